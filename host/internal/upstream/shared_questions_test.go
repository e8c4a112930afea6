package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// sleep makes a call that the server answers after an hour, and waits until pending calls of
// all hosts run. The returned function cancels it.
func (h *sharer) sleep(t *testing.T, pending func() int, want int) (cancel func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.try(ctx, "sleep", "", 3_600_000) //nolint:errcheck // it is cancelled
	}()
	require.Eventually(t, func() bool { return pending() == want }, time.Minute, time.Millisecond)
	return func() {
		end()
		<-ended
	}
}

// A server that does not say for which call it asks may do so for a call that it has answered,
// or that was cancelled. With clients of two hosts its question reaches neither, and then each
// host has a process of its own.
func TestAQuestionReachesNoClientOfAnotherHost(t *testing.T) {
	t.Parallel()
	shared, share := sharing(t, 0)
	a, b := shareTalker(t, share, "a", nil), shareTalker(t, share, "b", nil)
	pending := func() int { return upstream.SharedPending(shared) }
	require.Contains(t, a.do(t, "elicit", "of a", 0), `"name":"a"`, "it has one client")
	require.Equal(t, "b", b.do(t, "echo", "b", 0))
	require.Equal(t, a.Status().PID, b.Status().PID)
	require.Contains(t, b.do(t, "elicit_for", "named", 0), `"name":"b"`)
	a.heard, b.heard = nil, nil

	// The only running call is b's when the server asks for a's, which it has answered.
	endB := b.sleep(t, pending, 1)
	a.do(t, "elicit_later", "secret of a", 1)
	old := a.Status().PID
	require.Eventually(t, func() bool {
		a.do(t, "echo", "", 0)
		return a.Status().PID != old || len(b.all()) > 0
	}, time.Minute, 5*time.Millisecond, "the host moves to a process of its own")
	require.Empty(t, b.all())
	require.Empty(t, a.all())

	// A call that another host runs or has cancelled disturbs no question any more.
	b.do(t, "echo", "", 0)
	require.NotEqual(t, a.Status().PID, b.Status().PID)
	require.Contains(t, a.do(t, "elicit", "for a", 0), `"name":"a"`)
	endB()
	require.Contains(t, a.do(t, "elicit", "for a", 0), `"name":"a"`)
	endA := a.sleep(t, pending, 1)
	endA()
	require.Contains(t, b.do(t, "elicit", "for b", 0), `"name":"b"`)
	c := shareTalker(t, share, "c", nil)
	require.Contains(t, c.do(t, "elicit", "for c", 0), `"name":"c"`)
	require.NotContains(t, strings.Join(b.all(), ""), "for a")
	require.NotContains(t, strings.Join(a.all(), ""), "for b")
	require.Eventually(t, func() bool { return len(shared.Status()) == 3 }, time.Minute, 5*time.Millisecond, "the first process ends")
}

// The question for a host that has left reaches no host that came later.
func TestAQuestionForAHostThatHasLeft(t *testing.T) {
	t.Parallel()
	shared, share := sharing(t, time.Minute)
	a := shareTalker(t, share, "a", nil)
	a.do(t, "elicit_later", "secret of a", -1) // b's call of sleep makes the server ask
	pid := a.Status().PID
	a.Close()
	b := shareTalker(t, share, "b", nil)
	b.do(t, "echo", "", 0)
	require.Equal(t, pid, b.Status().PID)
	endB := b.sleep(t, func() int { return upstream.SharedPending(shared) }, 1)
	defer endB()
	require.Eventually(t, func() bool {
		b.do(t, "echo", "", 0)
		return b.Status().PID != pid || len(b.all()) > 0
	}, time.Minute, 5*time.Millisecond)
	require.Empty(t, b.all())
}

// The same holds for two users of one host: with the second one, a question that names no call
// reaches nobody, and then each user has a process.
func TestAQuestionReachesNoOtherUser(t *testing.T) {
	t.Parallel()
	h := shareTalker(t, nil, "host", nil)
	ann, bob := user{h, "ann"}, user{h, "bob"}
	require.Contains(t, ann.do(t, "elicit", "first", 0), `"name\":\"ann`)
	endBob := bob.sleep(t)
	ann.do(t, "elicit_later", "secret of ann", 1)
	require.Eventually(t, func() bool {
		ann.do(t, "echo", "", 0)
		return h.Status().Callers == 1 || len(h.all()) > 1
	}, time.Minute, 5*time.Millisecond)
	require.Len(t, h.all(), 1)
	require.Contains(t, ann.do(t, "elicit", "second", 0), `"name\":\"ann`, "bob's call still runs")
	endBob()
	require.Contains(t, ann.do(t, "elicit", "third", 0), `"name\":\"ann`, "bob's call was cancelled")
	require.Contains(t, bob.do(t, "elicit", "fourth", 0), `"name\":\"bob`)
	require.Len(t, h.all(), 4)
	require.NotContains(t, strings.Join(h.all(), ""), "secret")
	require.Equal(t, 2, h.Status().Callers)
}

// user is a signed-in user of a host.
type user struct {
	host *sharer
	name string
}

func (u user) try(ctx context.Context, tool, text string, n int) (string, error) {
	r := request(tool, fmt.Sprintf(`{"name":%q,"arguments":{"text":%q,"n":%d}}`, tool, text, n))
	r.Caller = call.Caller{EntryPoint: "http", ID: u.name, User: u.name}
	r.Ask = func(_ context.Context, _ string, params json.RawMessage) (json.RawMessage, error) {
		u.host.hear(u.name, params)
		return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"name":%q}}`, u.name)), nil
	}
	res, err := u.host.Call(ctx, r)
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

func (u user) do(t *testing.T, tool, text string, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := u.try(ctx, tool, text, n)
	require.NoError(t, err)
	return said
}

// sleep makes a call that runs until the returned function cancels it.
func (u user) sleep(t *testing.T) (cancel func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.try(ctx, "sleep", "", 3_600_000) //nolint:errcheck // it is cancelled
	}()
	require.Eventually(t, func() bool { return upstream.Pending(u.host.Server) == 1 }, time.Minute, time.Millisecond)
	return func() {
		end()
		<-ended
	}
}
