package approve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// by returns the n-th call of the client id at the entry point door.
func by(door, id string, n int) *call.Request {
	req := request(fmt.Sprintf(`{"n":%d}`, n))
	req.Caller = call.Caller{EntryPoint: door, ID: id}
	return req
}

// fill makes calls until one is refused, and returns the number of pending ones.
func (d *desk) fill(t *testing.T, door, id string) int {
	for n := range 1000 {
		if _, err := d.call(t.Context(), by(door, id, n+len(id)*10_000)); !toolerr.Is(err, toolerr.PendingApproval) {
			require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err), "%v", err)
			return n
		}
	}
	return 1000
}

// One caller cannot use up all slots, nor can all callers of one entry point.
func TestNobodyIsFlooded(t *testing.T) {
	d := newDesk(t, approve.Config{})
	require.Equal(t, 25, d.fill(t, "http", "a"))
	d.waits(t, by("http", "a", 10_000)) // one that waits is asked about again
	require.Equal(t, 25, d.fill(t, "http", "aa"))
	require.Equal(t, 25, d.fill(t, "http", "aaa"))
	require.Equal(t, 0, d.fill(t, "http", "aaaa"))
	require.Equal(t, 0, d.fill(t, "api", "aaaaa"), "it is over HTTP, too")
	require.Equal(t, 25, d.fill(t, "stdio", "stdio"))
	require.Equal(t, 0, d.fill(t, "cli", ""), "a hundred in all")

	// A decision releases a slot, and so does the end of a request's time.
	all, err := d.book.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, approve.MaxPending)
	_, err = d.book.Decide(t.Context(), all[99].ID, approve.Decision{})
	require.NoError(t, err)
	d.waits(t, by("cli", "", 1))
	d.clock.advance(5 * time.Minute)
	require.Equal(t, 25, d.fill(t, "http", "a"))

	// Callers with the same account share its limit.
	for n := range 25 {
		req := by("stdio", fmt.Sprint(n), n)
		req.Caller.Account = "all"
		d.waits(t, req)
	}
	req := by("stdio", "another", 99)
	req.Caller.Account = "all"
	_, err = d.call(t.Context(), req)
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
}

// A host that is killed after it reserved a slot does not leave it for ever.
func TestAPlaceThatNobodyHasIsFoundOut(t *testing.T) {
	d := newDesk(t, approve.Config{})
	for n := range 25 {
		for steps := 1; ; steps++ { // until it is killed right after it took one
			f := &fate{at: steps, after: true}
			stage := approve.New(approve.Config{}, &approve.Store{Keys: mortal{&d.shelf, f}, Now: d.clock.now}, nil)
			before := d.places(t)
			if alive(func() { stage.Stage(nil)(t.Context(), by("http", "a", n)) }) || d.places(t) > before { //nolint:errcheck // it is killed
				break
			}
		}
	}
	require.Equal(t, 25, d.places(t))
	all, err := d.book.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
	require.Equal(t, 25, d.fill(t, "http", "a"))
}

// places returns the number of reserved slots.
func (d *desk) places(t *testing.T) int {
	entry, err := d.shelf.Get(t.Context(), "approvals/register")
	if toolerr.Is(err, toolerr.NotFound) {
		return 0
	}
	require.NoError(t, err)
	var reg struct{ Open []json.RawMessage }
	require.NoError(t, json.Unmarshal(entry.Value, &reg))
	return len(reg.Open)
}

// counted counts how often records are listed.
type counted struct {
	*shelf
	lists int
}

func (c *counted) List(ctx context.Context, prefix, after string, limit int) ([]approve.Entry, error) {
	c.lists++
	return c.shelf.List(ctx, prefix, after, limit)
}

// The records are bounded in number and in bytes, and a call does not list them.
func TestWhatIsKeptIsBounded(t *testing.T) {
	d := newDesk(t, approve.Config{})
	keys := &counted{shelf: &d.shelf}
	d.book.Keys = keys
	long := strings.Repeat("x", 5<<10)
	for n := range 450 {
		req := by("cli", "", n)
		req.Params = fmt.Appendf(nil, `{"arguments":{"n":%d,"text":%q}}`, n, long)
		p := d.waits(t, req)
		switch n % 3 {
		case 0:
			d.approve(t, p.ID)
			_, err := d.call(t.Context(), req)
			require.NoError(t, err)
		case 1:
			_, err := d.book.Decide(t.Context(), p.ID, approve.Decision{})
			require.NoError(t, err)
		default:
			d.clock.advance(time.Minute)
		}
	}
	require.Zero(t, keys.lists)
	all, err := d.book.List(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(all), 400)
	require.Greater(t, len(all), 300)
	size := 0
	for _, r := range all {
		if r.State == approve.Done || r.State == approve.Denied {
			size += len(r.Args)
			require.Contains(t, string(r.Args), `{"toolroom/left_out":{"bytes":`)
		}
	}
	require.Less(t, size, 400*(2<<10))

	// The arguments of all pending requests together are bounded.
	d.clock.advance(time.Hour)
	p := d.waits(t, by("http", "a", 1))
	entry, err := d.shelf.Get(t.Context(), "approvals/register")
	require.NoError(t, err)
	reg := strings.Replace(string(entry.Value), `"size":7,`, `"size":16777210,`, 1)
	require.NotEqual(t, reg, string(entry.Value), "%s", p.ID)
	_, err = d.shelf.Put(t.Context(), entry.Key, []byte(reg), entry.Version, time.Time{})
	require.NoError(t, err)
	_, err = d.call(t.Context(), by("stdio", "", 2))
	require.ErrorContains(t, err, "have 16777217 bytes, more than 16777216")
	d.waits(t, by("http", "a", 1))
}

// Large arguments of a request that nobody decided are not stored for a day.
func TestLargeArgumentsAreForgotten(t *testing.T) {
	d := newDesk(t, approve.Config{})
	seen := map[string]time.Time{}
	d.book.Keys = expiries{&d.shelf, seen}
	d.waits(t, request(`{"text":"`+strings.Repeat("x", 100<<10)+`"}`))
	for key, at := range seen {
		if strings.HasPrefix(key, "approval/") {
			require.Equal(t, 6*time.Minute, at.Sub(d.clock.now()))
		}
	}
}

// expiries records until when keys are stored.
type expiries struct {
	*shelf
	seen map[string]time.Time
}

func (e expiries) Put(ctx context.Context, key string, value []byte, was int64, expires time.Time) (int64, error) {
	e.seen[key] = expires
	return e.shelf.Put(ctx, key, value, was, expires)
}

// An approval is valid in one scope only, and ids reveal nothing about the identity of
// the scope.
func TestAnApprovalIsForOnePlace(t *testing.T) {
	d := newDesk(t, approve.Config{})
	at := func(bound string) call.Handler {
		stage := approve.New(approve.Config{Scope: func(*call.Tool) approve.Scope {
			return approve.Scope{Description: "in /" + bound[:1], Identity: []byte(bound)}
		}}, d.book, func(context.Context, *call.Request) error { return nil })
		t.Cleanup(stage.Close)
		return stage.Stage(func(context.Context, *call.Request) (*call.Result, error) { return text("done"), nil })
	}
	_, err := at("staging")(t.Context(), request(`{}`))
	id, ok := pendingOf(err)
	require.True(t, ok)
	d.approve(t, id)
	_, err = at("production")(t.Context(), request(`{}`))
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	r, err := d.book.Find(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "in /s", r.Where)
	_, err = at("staging")(t.Context(), request(`{}`))
	require.NoError(t, err)

	other := newDesk(t, approve.Config{Scope: func(*call.Tool) approve.Scope { return approve.Scope{Identity: []byte("staging")} }})
	require.NotEqual(t, id[:16], other.waits(t, request(`{}`)).ID[:16], "another store, another secret")
}
