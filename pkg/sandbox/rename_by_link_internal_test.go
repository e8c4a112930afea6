package sandbox

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenameByLink(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		noLink bool
		stuck  []string // names that cannot be removed
		linked bool
		err    error
		left   []string
	}{
		"renamed":                     {linked: true, left: []string{"new"}},
		"no link":                     {noLink: true, err: refused, left: []string{"old"}},
		"the old name stays":          {stuck: []string{"old"}, linked: true, err: refused, left: []string{"old"}},
		"neither name can be removed": {stuck: []string{"old", "new"}, linked: true, left: []string{"old", "new"}},
		"only the new one cannot be":  {stuck: []string{"new"}, linked: true, left: []string{"new"}},
	} {
		names := []string{"old"}
		linked, err := renameByLink("old", "new", func(_, to string) error {
			if c.noLink {
				return refused
			}
			names = append(names, to)
			return nil
		}, func(one string) error {
			if slices.Contains(c.stuck, one) {
				return refused
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == one })
			return nil
		})
		require.Equal(t, c.linked, linked, name)
		require.Equal(t, c.err, err, name)
		require.Equal(t, c.left, names, name)
	}
}
