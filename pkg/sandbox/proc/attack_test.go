//go:build linux

package proc_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// attempt runs an attack and reports whether it had an effect.
func (s *scene) attempt(t testing.TB, r *proc.Runner, level proc.Level, a attack) (escaped bool, out string) {
	t.Helper()
	defer func() {
		if level == proc.Off { // a signal sent to the victim may not have arrived yet
			s.stopVictim()
			s.victim = nil
		}
		s.reset(t)
	}()
	if ask, ok := onlyAsked[a.name]; ok && level == proc.Off {
		a.script = ask
	}
	_, out = run(t, r, s.command(a.script))
	escaped = strings.Contains(out, "ESCAPED")
	select {
	case what := <-s.reach:
		escaped, out = true, out+"\nreached "+what
	default:
	}
	if level != proc.Off {
		escaped = escaped || s.damaged(t)
	}
	return escaped, out
}

// missing returns the program or architecture that an attack needs and this
// machine does not have, "" if it has all.
func missing(a attack) string {
	for _, need := range strings.Fields(a.needs) {
		switch need {
		case "amd64":
			if runtime.GOARCH != need {
				return need
			}
		case "nobody": // root's privileges make no difference to it
			if !long && os.Geteuid() == 0 {
				return "PROC_LONG, runs as nobody"
			}
		case "long":
			if !long {
				return "PROC_LONG"
			}
		default:
			if _, err := exec.LookPath(need); err != nil {
				return need
			}
		}
	}
	return ""
}

// tally counts the results of the attacks.
type tally struct {
	sync.Mutex
	cases   int
	escaped []string
	notRun  []string
}

func (c *tally) skip(name, why string) {
	c.Lock()
	defer c.Unlock()
	c.notRun = append(c.notRun, name+": "+why)
}

func (c *tally) count(name string, escaped bool) {
	c.Lock()
	defer c.Unlock()
	c.cases++
	if escaped {
		c.escaped = append(c.escaped, name)
	}
}

// TestAttacks runs all attacks, each first unconfined. It skips an attack that
// does not work unconfined, and one whose level or program this machine does
// not have.
func TestAttacks(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	var total tally
	t.Run("corpus", func(t *testing.T) {
		for kind, attacks := range map[string][]attack{"files": fileAttacks, "processes": processAttacks, "network": networkAttacks} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				runners := map[proc.Level]*proc.Runner{}
				for _, level := range enforced {
					runners[level] = s.runner(t, level)
				}
				for i, a := range attacks {
					if mcpkittest.RaceEnabled && !long && i%8 != 0 { // these tests do not look for races
						total.skip(a.name, "no PROC_LONG, with -race")
						continue
					}
					if program := missing(a); program != "" {
						total.skip(a.name, "no "+program)
						continue
					}
					if works, _ := s.attempt(t, runners[proc.Off], proc.Off, a); !works {
						total.skip(a.name, "does not work unconfined")
						continue
					}
					for _, level := range strings.Fields(a.levels) {
						level := proc.Level(level)
						if !slices.Contains(enforced, level) {
							total.skip(a.name, string(level)+" is not available")
							continue
						}
						escaped, out := s.attempt(t, runners[level], level, a)
						total.count(a.name+" at "+string(level), escaped)
						if escaped {
							t.Errorf("%s escaped from %s: %s", a.name, level, out)
						}
					}
				}
			})
		}
	})
	slices.Sort(total.notRun)
	t.Logf("%d cases, %d escapes, %d not run (%s)", total.cases, len(total.escaped), len(total.notRun), strings.Join(total.notRun, "; "))
	require.Empty(t, total.escaped)
	require.Greater(t, total.cases, 0)
}
