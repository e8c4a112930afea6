package changes_test

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// A later command writes, moves or removes one of the hard links that an earlier command
// has made. The applied tree is the one that the commands leave in the root.
func TestHardLinksOfEarlierCommands(t *testing.T) {
	const links = `mkdir -p n/m; echo n > n1; ln n1 n/n2; ln n1 n/m/n3; ln a d/a2; chmod 750 n; chmod 500 n/m`
	benches := newKeptAndLayered(t)
	for name, scripts := range map[string][]string{
		"written":              {links, `echo more >> n/n2; echo more >> a`},
		"written twice":        {links, `echo more >> n1`, `echo most >> n/m/n3`, `cat n/n2`},
		"moved":                {links, `mv n1 d/moved; mv a a3`},
		"moved over another":   {links, `mv n1 d/x; mv -f d/a2 h1`},
		"mode and time":        {links, `chmod 600 n1; touch -d @1600000000 n/n2; chmod 640 a`},
		"replaced":             {links, `rm n1; echo other > n1; sed -i s/n/m/ n/n2`},
		"one removed":          {links, `rm -f n/n2`, `echo more >> n1`},
		"directory removed":    {links, `chmod 700 n/m; rm -r n`, `echo more >> n1`},
		"directory made again": {links, `chmod 700 n/m; rm -r n; mkdir n; ln n1 n/n4`, `echo more >> n/n4`},
		"exchanged":            {links, exchange + `exchange n1 d/x`, `echo more >> d/x`},
		"linked again":         {links, `ln n/n2 new; ln -f n1 h1`, `echo more >> new`},
		"unchanged":            {links, `true`, `cat n1 n/n2`},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			benches.requireAppliedIsAsKept(t, scripts...)
		})
	}
}
