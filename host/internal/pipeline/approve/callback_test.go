package approve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// receiver is who is told of requests: it answers with one status after the
// other, and then with 204.
func receiver(t *testing.T, statuses ...int) (url string, got chan approve.Notice, posts *atomic.Int64) {
	got, posts = make(chan approve.Notice, 10), new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get(approve.SignatureHeader) != approve.Sign("key", r.Header.Get(approve.TimestampHeader), body) {
			t.Error("it is not signed")
		}
		n := int(posts.Add(1))
		if n <= len(statuses) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(statuses[n-1])
			return
		}
		var notice approve.Notice
		if err := json.Unmarshal(body, &notice); err != nil {
			t.Error(err)
		}
		got <- notice
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s.URL, got, posts
}

func TestACallbackIsPostedAndDecides(t *testing.T) {
	url, got, posts := receiver(t, 503, 429)
	d := newDesk(t, approve.Config{PublicURL: "https://host", Callback: approve.Callback{URL: url, Secret: "key", Pause: time.Millisecond}})
	p := d.waits(t, request(`{"path":"a"}`))
	notice := <-got
	require.EqualValues(t, 3, posts.Load())
	require.Equal(t, "approval.pending", notice.Event)
	require.Equal(t, p.ID, notice.Approval.ID)
	require.JSONEq(t, `{"path":"a"}`, string(notice.Approval.Args))
	token, ok := strings.CutPrefix(notice.DecideURL, "https://host/v1/callback/"+p.ID+"/")
	require.True(t, ok)
	told, err := json.Marshal(p)
	require.NoError(t, err)
	require.NotContains(t, string(told), token, "who called must not decide")

	// Who was told is not told again.
	require.Eventually(t, func() bool {
		r, err := d.book.Find(t.Context(), p.ID)
		return err == nil && r.Notified
	}, time.Minute, time.Millisecond)
	d.waits(t, request(`{"path":"a"}`))

	_, err = d.book.Redeem(t.Context(), p.ID, token[1:]+"x", approve.Decision{Approve: true})
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
	_, err = d.book.Authorize(t.Context(), p.ID, "")
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
	_, err = d.book.Redeem(t.Context(), p.ID, token, approve.Decision{Approve: true, By: "the callback"})
	require.NoError(t, err)
	_, err = d.book.Redeem(t.Context(), p.ID, token, approve.Decision{Approve: true})
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "once")
	_, err = d.call(t.Context(), request(`{"path":"a"}`))
	require.NoError(t, err)
	require.EqualValues(t, 3, posts.Load())
}

// A host that was killed before it told anybody does so when the call is made
// again, with a token of its own.
func TestACallbackThatWasNotPostedIsPostedLater(t *testing.T) {
	d := newDesk(t, approve.Config{})
	p := d.waits(t, request(`{}`))
	url, got, _ := receiver(t)
	book := *d.book
	later := approve.New(approve.Config{PublicURL: "https://host", Callback: approve.Callback{URL: url, Secret: "key"}}, &book, nil)
	defer later.Close()
	_, err := later.Stage(nil)(t.Context(), request(`{}`))
	require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	notice := <-got
	_, token, _ := strings.Cut(notice.DecideURL, p.ID+"/")
	_, err = d.book.Redeem(t.Context(), p.ID, token, approve.Decision{})
	require.NoError(t, err)
}

// The same call, made again while somebody is being told of it, has nobody told
// anew, and the address that is on its way stays good; so do those that other
// hosts have told.
func TestAnAddressThatIsOutStaysGood(t *testing.T) {
	arrived, answer := make(chan string, 10), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var notice approve.Notice
		if err := json.NewDecoder(r.Body).Decode(&notice); err != nil {
			t.Error(err)
		}
		arrived <- notice.DecideURL
		<-answer
	}))
	defer s.Close()
	cfg := approve.Config{PublicURL: "https://host", Callback: approve.Callback{URL: s.URL, Secret: "key"}}
	d := newDesk(t, cfg)
	p := d.waits(t, request(`{}`))
	urls := []string{<-arrived}
	for range 3 {
		d.waits(t, request(`{}`))
	}
	for range 20 { // other hosts, of which so many may tell
		book := *d.book
		other := approve.New(cfg, &book, nil)
		_, err := other.Stage(nil)(t.Context(), request(`{}`))
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
		defer other.Close()
	}
	for range 7 {
		urls = append(urls, <-arrived)
	}
	close(answer)
	for _, url := range urls {
		_, token, _ := strings.Cut(url, p.ID+"/")
		_, err := d.book.Authorize(t.Context(), p.ID, token)
		require.NoError(t, err)
	}
	_, token, _ := strings.Cut(urls[0], p.ID+"/")
	_, err := d.book.Redeem(t.Context(), p.ID, token, approve.Decision{Approve: true})
	require.NoError(t, err)
	require.Empty(t, arrived)
}

func TestACallbackIsNotPostedForEver(t *testing.T) {
	for statuses, want := range map[string]int64{"500 500 500 500": 3, "404": 1, "302": 1} {
		var all []int
		for _, text := range strings.Fields(statuses) {
			var status int
			_, err := fmt.Sscan(text, &status)
			require.NoError(t, err)
			all = append(all, status)
		}
		url, got, posts := receiver(t, all...)
		d := newDesk(t, approve.Config{Callback: approve.Callback{URL: url, Secret: "key", Pause: time.Microsecond}})
		d.waits(t, request(`{}`))
		require.Eventually(t, func() bool { return posts.Load() == want }, time.Minute, time.Millisecond)
		d.stage.Close()
		require.Equal(t, want, posts.Load(), statuses)
		require.Empty(t, got)
	}
}

func TestConfig(t *testing.T) {
	require.NoError(t, approve.Config{}.Validate())
	for want, c := range map[string]approve.Config{
		"approval: expires must be at least a second, got 1ms":                                                       {Expires: time.Millisecond},
		"approval: expires must not be negative, got -1s":                                                            {Expires: -time.Second},
		"approval: wait must not be negative, got -1s":                                                               {Wait: -time.Second},
		"approval: callback must begin with http:// or https://":                                                     {Callback: approve.Callback{URL: "ftp://x"}},
		"approval: callback_secret is missing; it signs posted requests, so that the receiver can verify the sender": {Callback: approve.Callback{URL: "http://x"}},
	} {
		require.EqualError(t, c.Validate(), want)
	}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", approve.Secret("key"), approve.Callback{Secret: "key"}, approve.Callback{Secret: "key"}), "key\"")
}
