package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNoListCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "")
	for _, s := range w.all {
		require.False(t, hasError(s.call(t, "talk__grow", "for_"+s.name, 0)))
	}
	for _, s := range w.all {
		list := s.ask(t, "tools/list", `{}`)
		for until := time.Now().Add(time.Minute); !strings.Contains(list, `"talk__for_`+s.name+`"`); list = s.ask(t, "tools/list", `{}`) {
			require.True(t, time.Now().Before(until), list)
			time.Sleep(10 * time.Millisecond)
		}
		w.onlyOwn(t, s, list)
		for _, other := range w.all {
			answer := s.call(t, "talk__for_"+other.name, "x", 0)
			require.Equal(t, other == s, !hasError(answer), answer)
		}
		require.Contains(t, texts(t, s.call(t, "own__env", "SESSION_TOKEN", 0)), "token of "+w.host(s), "another token is another process")
		require.Equal(t, s.name != "delta", !hasError(s.call(t, "talk__env", "x", 0)), "the profile of delta")
	}
}

// Progress and log messages reach only the session whose call they belong to.
func TestNoNotificationCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "")
	var calls sync.WaitGroup
	for _, s := range w.all {
		calls.Go(func() {
			for range 20 {
				<-s.begin("tools/call", s.params("talk__progress", "step of "+s.name, 0))
				<-s.begin("tools/call", s.params("talk__log", "log of "+s.name, 0))
				<-s.begin("tools/call", s.params("own__log", "log of "+s.name, 0))
			}
		})
	}
	calls.Wait()
	for _, s := range w.all {
		s.eventuallyHears(t, "step of "+s.name)
	}
	w.heardOnlyOwn(t)
}

func TestNoResourceUpdateCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "")
	for _, s := range w.all {
		require.False(t, hasError(s.ask(t, "resources/subscribe", fmt.Sprintf(`{"uri":"test://%s"}`, s.name))))
		require.False(t, hasError(s.ask(t, "resources/subscribe", `{"uri":"test://everybody"}`)))
	}
	for _, s := range w.all {
		for _, other := range w.all {
			require.False(t, hasError(s.call(t, "talk__touch", "test://"+other.name, 0)))
		}
	}
	require.False(t, hasError(w.all[0].call(t, "talk__touch", "test://everybody", 0)))
	for _, s := range w.all {
		s.eventuallyHears(t, "test://"+s.name)
		s.eventuallyHears(t, "test://everybody")
	}
	w.heardOnlyOwn(t)

	// Who unsubscribes or leaves takes nothing from the others.
	first := w.all[0]
	require.False(t, hasError(first.ask(t, "resources/unsubscribe", `{"uri":"test://everybody"}`)))
	before := first.all()
	require.False(t, hasError(first.call(t, "talk__touch", "test://everybody", 0)))
	for _, s := range w.all[1:] {
		require.Eventually(t, func() bool { return strings.Count(s.all(), "test://everybody") == 2 }, time.Minute, time.Millisecond)
	}
	require.Equal(t, before, first.all())
}

// A question reaches the session whose call asks it, and its answer goes back to that call.
func TestNoElicitationCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "")
	for _, s := range w.all {
		answer := s.call(t, "talk__elicit_for", "question for "+s.name, 0)
		require.Contains(t, answer, s.name)
		w.onlyOwn(t, s, answer)
		require.Contains(t, s.all(), "question for "+s.name)
		require.False(t, hasError(s.call(t, "talk__url", "link for "+s.name, 0)))
	}
	for _, s := range w.all { // the server says for each link that it is done, during a call of another session
		require.False(t, hasError(w.all[0].call(t, "talk__complete", "link for "+s.name, 0)))
		s.eventuallyHears(t, `"method":"notifications/elicitation/complete","params":{"elicitationId":"link for `+s.name+`"}`)
	}
	// Without the name of a call, the question could be for any session. From then on, each has a
	// process of its own, and the question and its answer are its own.
	for _, s := range w.all {
		require.False(t, hasError(s.call(t, "talk__elicit_later", "late question for "+s.name, 5)))
	}
	var calls sync.WaitGroup
	for _, s := range w.all {
		calls.Go(func() {
			own := 0
			for end := time.Now().Add(3 * time.Minute); own < 10 && time.Now().Before(end); {
				answer := <-s.begin("tools/call", s.params("talk__elicit", "question for "+s.name, 0))
				if strings.Contains(answer, s.name) {
					own++
				}
				for _, other := range w.all {
					if other != s && strings.Contains(answer, other.name) {
						t.Errorf("%s answered the question for %s: %s", other.name, s.name, answer)
					}
				}
			}
			if own < 10 {
				t.Errorf("the questions for %s are refused", s.name)
			}
		})
	}
	calls.Wait()
	w.heardOnlyOwn(t)
}

// A result that a session has cached is not the result of another session.
func TestNoCacheEntryCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "cache: {tools: [talk__count]}\n")
	results := map[string]string{}
	for _, s := range w.all {
		first := texts(t, s.call(t, "talk__count", "x", 0))
		require.Equal(t, first, texts(t, s.call(t, "talk__count", "x", 0)), "it is cached")
		require.Empty(t, results[first], "the result of %s", s.name)
		results[first] = s.name
	}
}

// An approval of a call is valid for the session whose call was approved.
func TestNoApprovalCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "policy: {rules: [{tool: talk__count, do: ask}]}\napproval: {ask_client: false}\n")
	ids := map[string]string{} // session by approval
	for _, s := range w.all {
		answer := s.call(t, "talk__count", "x", 0)
		require.Contains(t, answer, "PENDING_APPROVAL")
		var m struct {
			Result struct {
				Meta struct {
					Pending struct{ ID string } `json:"toolroom/pending"`
				} `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &m))
		require.NotEmpty(t, m.Result.Meta.Pending.ID)
		require.Empty(t, ids[m.Result.Meta.Pending.ID])
		ids[m.Result.Meta.Pending.ID] = s.name
	}
	for id, name := range ids {
		out, err := exec.Command("mcp-host", "approvals", "approve", id, "--state", w.state).CombinedOutput()
		require.NoError(t, err, string(out))
		for _, s := range w.all {
			if s.name != name {
				require.Contains(t, s.call(t, "talk__count", "x", 0), "PENDING_APPROVAL", "%s has the approval of %s", s.name, name)
			}
		}
		for _, s := range w.all {
			if s.name == name {
				require.Contains(t, texts(t, s.call(t, "talk__count", "x", 0)), "call ")
			}
		}
		break // the requests of the others are still the same ones
	}
}

// A session cannot read the file with the whole of another session's large result.
func TestNoSpilledFileCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "max_result: 64KiB\n")
	files := map[string]string{} // by session
	users := 0
	for _, s := range w.all {
		answer := s.call(t, "talk__blob", "large result of "+s.name, 20_000)
		var m struct {
			Result struct {
				Meta struct {
					Spilled []string `json:"toolroom/spilled"`
				} `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(answer), &m))
		for _, file := range m.Result.Meta.Spilled {
			files[s.name] = file
		}
		if w.host(s) == "serve" { // the other user could read the file
			require.Contains(t, answer, "no files with results of users who signed in")
			require.Empty(t, m.Result.Meta.Spilled)
			users++
		}
	}
	for _, s := range w.all {
		for name, file := range files {
			answer := s.ask(t, "tools/call", fmt.Sprintf(`{"name":"view__view","arguments":{"file_path":%q}}`, file))
			require.Equal(t, s.name == name, strings.Contains(answer, "large result of "+name), "%s reads the file of %s: %.300s", s.name, name, answer)
		}
		require.Contains(t, s.ask(t, "tools/call", `{"name":"view__view","arguments":{"file_path":"a.txt"}}`), "of "+w.host(s))
	}
	require.Equal(t, 2, users)
	require.NotEmpty(t, files["alpha"])
	require.NotEqual(t, filepath.Dir(files["alpha"]), filepath.Dir(files["beta"]))
}

// TestNothingCrosses lets all sessions do at random what the other tests do.
func TestNothingCrosses(t *testing.T) {
	t.Parallel()
	w := isolate(t, "cache: {tools: [talk__count]}\n")
	for _, s := range w.all {
		require.False(t, hasError(s.ask(t, "resources/subscribe", fmt.Sprintf(`{"uri":"test://%s"}`, s.name))))
	}
	var all sync.WaitGroup
	for i, s := range w.all {
		for caller := range 5 { // twenty in all
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
				tools := []string{"echo", "elicit_for", "url", "complete", "log", "log_later", "touch", "progress", "changed", "grow", "sleep", "count", "roots"}
				rounds := either(40, 400)
				for round := range rounds {
					tool, text := tools[random.IntN(len(tools))], s.name
					if round == rounds*3/4 { // a question without a call separates the sessions
						tools = append(tools, "elicit", "elicit_later")
					}
					switch tool {
					case "touch":
						text = "test://" + text
					case "grow":
						text = "for_" + text
					case "roots":
						if random.IntN(10) > 0 {
							continue
						}
					}
					answer := <-s.begin("tools/call", s.params([]string{"talk__", "own__"}[random.IntN(2)]+tool, text, random.IntN(5)))
					for _, other := range w.all {
						if other != s && strings.Contains(answer, other.name) {
							t.Errorf("%s got of %s: %s", s.name, tool, answer)
						}
					}
				}
			})
		}
	}
	all.Wait()
	w.heardOnlyOwn(t)
	for _, s := range w.all {
		w.onlyOwn(t, s, s.ask(t, "tools/list", `{}`))
		s.eventuallyHears(t, s.name)
	}
}
