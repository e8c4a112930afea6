package endpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// question is what is asked in these tests: with a name that needs another.
func question() *llm.Request {
	return &llm.Request{
		Model:    "what the caller calls it",
		Messages: []llm.Message{{Role: llm.UserRole, Parts: []llm.Part{text("hi")}}},
		Tools:    []llm.Tool{{Name: "grep", Input: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"}}}`)}, {Name: "ls"}},
	}
}

// serve serves by f, and returns its address.
func serve(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// ask asks with and without pieces, as wanted, and checks that the pieces are the
// answer.
func ask(t *testing.T, m provider.Model, pieces bool) (*llm.Response, error) {
	t.Helper()
	if !pieces {
		return m.Ask(t.Context(), question(), nil)
	}
	var s llm.ResponseBuilder
	res, err := m.Ask(t.Context(), question(), s.Add)
	s.FinishCalls()
	if res == nil {
		require.Empty(t, s.Response.Parts)
	} else {
		require.Equal(t, res.Parts, s.Response.Parts, "the pieces are the answer")
	}
	return res, err
}

func eachVendor(t *testing.T, test func(t *testing.T, v vendor)) {
	for _, v := range vendors() {
		t.Run(v.name, func(t *testing.T) { test(t, v) })
	}
}

func TestStreamedAndWholeAreTheSame(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		for _, x := range v.answer {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				name, value, _ := strings.Cut(v.auth, ": ")
				if err != nil || r.Header.Get(name) != value || strings.Contains(r.URL.String(), key) || strings.Contains(string(body), "what the caller") {
					http.Error(w, "not so", http.StatusTeapot)
					return
				}
				if strings.Contains(string(body), `"stream":true`) || r.URL.RawQuery == "alt=sse" {
					stream(w, x.events...)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, x.whole) //nolint:errcheck // the test sees
			})
			for _, pieces := range []bool{false, true} {
				res, err := ask(t, v.open(url), pieces)
				require.NoError(t, err, x.name)
				require.Equal(t, &x.want, res, "%s, in pieces: %v", x.name, pieces)
			}
		}
	})
}

func TestAnAnswerAsAWholeWhereAStreamWasAskedFor(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, v.answer[1].whole) }) //nolint:errcheck // the test sees
		res, err := ask(t, v.open(url), true)
		require.NoError(t, err)
		require.Equal(t, &v.answer[1].want, res)
	})
}

// A stream that is cut is told of, with what had come; never is an answer made of it
// that was not whole.
func TestCutAfterEveryEvent(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		x := v.answer[1]
		var n atomic.Int32
		var asked atomic.Int32
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			stream(w, x.events[:n.Load()]...)
			if n.Load()%2 == 0 { // else it ends in order
				panic(http.ErrAbortHandler)
			}
		})
		m := v.open(url)
		for cut := range len(x.events) {
			n.Store(int32(cut))
			asked.Store(0)
			began := false
			var s llm.ResponseBuilder
			res, err := m.Ask(t.Context(), question(), func(d llm.Delta) { began = true; s.Add(d) })
			if err == nil { // what follows is of no weight: usage, [DONE]
				require.Equal(t, x.want.Parts, res.Parts)
				require.Equal(t, x.want.StopReason, res.StopReason)
				continue
			}
			require.Equal(t, toolerr.TransportError, toolerr.CodeOf(err), "after %d: %v", cut, err)
			if began {
				require.EqualValues(t, 1, asked.Load(), "after the first piece nothing is asked anew")
				s.FinishCalls()
				require.Equal(t, s.Response.Parts, res.Parts)
			} else {
				require.EqualValues(t, 3, asked.Load(), "before it, what may pass is asked again")
			}
		}
	})
}

func TestAnErrorWithinAStream(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		var asked atomic.Int32
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 { // at its head: nothing was given away
				stream(w, v.fault)
				return
			}
			stream(w, append(append([]string{}, v.answer[0].events[:3]...), v.fault)...)
		})
		res, err := ask(t, v.open(url), true)
		require.Contains(t, []toolerr.Code{toolerr.RateLimited, toolerr.ModelError}, toolerr.CodeOf(err))
		require.NotContains(t, err.Error(), key)
		require.NotNil(t, res)
		require.EqualValues(t, 2, asked.Load())
	})
}

func TestRefusalsAndOverload(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		for i, c := range []struct {
			status int
			header string
			body   string
			code   toolerr.Code
			asked  int32
		}{
			{400, "", v.refused, toolerr.InvalidInput, 1},
			{401, "", `{"error":{"message":"bad key ` + key + `"}}`, toolerr.AuthFailed, 1},
			{403, "", "no", toolerr.AuthFailed, 1},
			{404, "", "<html>" + key, toolerr.InvalidInput, 1},
			{413, "", "", toolerr.LimitReached, 1},
			{400, "", `{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","type":"invalid_request_error"}}`, toolerr.LimitReached, 1},
			{400, "", `{"error":{"message":"API key not valid","status":"INVALID_ARGUMENT","code":400,"details":[{"reason":"API_KEY_INVALID"}]}}`, toolerr.AuthFailed, 1},
			{429, "", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, toolerr.AuthFailed, 1},
			{429, "Retry-After: 3600", "slow down", toolerr.RateLimited, 1},
			{429, "Retry-After: 0", "slow down", toolerr.RateLimited, 3},
			{429, "", "slow down", toolerr.RateLimited, 3},
			{500, "", "oops", toolerr.ModelError, 3},
			{500, "X-Should-Retry: false", "oops", toolerr.ModelError, 1},
			{502, "", "<html>bad gateway", toolerr.TransportError, 3},
			{v.status, "", v.overloaded, toolerr.RateLimited, 3},
			{302, "Location: https://elsewhere.example/x", "", toolerr.TransportError, 1},
			{204, "", "", toolerr.ModelError, 3},
		} {
			var asked atomic.Int32
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				if name, value, ok := strings.Cut(c.header, ": "); ok {
					w.Header().Set(name, value)
				}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body) //nolint:errcheck // the test sees
			})
			res, err := ask(t, v.open(url), i%2 == 0)
			require.Equal(t, c.code, toolerr.CodeOf(err), "%d %s: %v", c.status, c.body, err)
			require.Nil(t, res)
			require.NotContains(t, err.Error(), key)
			require.Equal(t, c.asked, asked.Load(), "%d %s %s", c.status, c.header, c.body)
		}
	})
}

func TestWhatPassesIsAskedAgain(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		var asked atomic.Int32
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			switch asked.Add(1) {
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				w.Header().Set("Retry-After-Ms", "1")
				w.WriteHeader(v.status)
				io.WriteString(w, v.overloaded) //nolint:errcheck // the test sees
			default:
				stream(w, v.answer[0].events...)
			}
		})
		res, err := ask(t, v.open(url), true)
		require.NoError(t, err)
		require.Equal(t, &v.answer[0].want, res)
	})
}

// The connection closes when who asked gives up, before an answer and within one.
func TestCancel(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		for _, events := range [][]string{nil, v.answer[0].events[:3]} {
			gone, came := make(chan struct{}), make(chan struct{})
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body) //nolint:errcheck // so that its end is seen
				if events != nil {
					stream(w, events...)
				}
				close(came)
				<-r.Context().Done()
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			m := v.open(url)
			go func() { <-came; cancel() }()
			_, err := m.Ask(ctx, question(), func(llm.Delta) {})
			require.Equal(t, toolerr.Cancelled, toolerr.CodeOf(err), "%v", err)
			<-gone
		}
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		_, err := v.open("http://127.0.0.1:1").Ask(ctx, question(), nil)
		require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
	})
}

func TestSilence(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // so that its end is seen
			<-r.Context().Done()
		})
		_, err := ask(t, v.open(url, func(c *endpoint.Config) { c.MaxSilence = 20 * time.Millisecond }), true)
		require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
		require.ErrorContains(t, err, "was silent for 20ms")
		url = serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // so that its end is seen
			stream(w, v.answer[0].events[:4]...)
			<-r.Context().Done()
		})
		var s llm.ResponseBuilder
		res, err := v.open(url, func(c *endpoint.Config) { c.MaxSilence = 50 * time.Millisecond }).Ask(t.Context(), question(), s.Add)
		if err != nil { // the last of Gemini's four events is its end
			require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
		}
		if res != nil { // else it was silent before the first event, on a slow machine
			require.Equal(t, s.Response.Parts, res.Parts)
		}
	})
}

// What follows the end of an answer is not waited for, whatever it says to keep the
// connection alive.
func TestAnEndThatDoesNotEnd(t *testing.T) {
	for _, v := range []vendor{openAI(), claude()} {
		var waited atomic.Bool
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) //nolint:errcheck // so that its end is seen
			stream(w, v.answer[0].events...)
			for range 250 {
				stream(w, ":")
				select {
				case <-r.Context().Done():
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
			waited.Store(true)
		})
		res, err := ask(t, v.open(url), true)
		require.NoError(t, err)
		require.Equal(t, &v.answer[0].want, res)
		require.False(t, waited.Load())
	}
}

func TestGarbage(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		for kind, bodies := range map[string][]string{
			"text/event-stream": {"data: {\n\n", "data: \xff\n\n", "data: {\"a\":1,\"a\":2}\n\n"},
			"application/json":  {"", "null", "[]", "{", "{}", `{"choices":[]}`, "<html>", `{"content":7,"candidates":7,"choices":7}`},
		} {
			for _, body := range bodies {
				url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", kind)
					io.WriteString(w, body) //nolint:errcheck // the test sees
				})
				_, err := ask(t, v.open(url), kind != "application/json")
				require.Equal(t, toolerr.ModelError, toolerr.CodeOf(err), "%s %q: %v", kind, body, err)
			}
		}
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "data: "+strings.Repeat("x", 17<<20)+"\n\n")
		})
		_, err := ask(t, v.open(url), true)
		require.ErrorContains(t, err, "an event of its answer is larger than 16 MiB")
	})
}

// Neither key nor conversation go to another host.
func TestRedirects(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		var elsewhere atomic.Int32
		other := serve(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
		for _, status := range []int{301, 302, 303, 307, 308} {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other+"/x", status) })
			_, err := ask(t, v.open(url), true)
			require.ErrorContains(t, err, "redirects to "+strings.TrimPrefix(other, "http://"))
		}
		require.Zero(t, elsewhere.Load())
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/moved") {
				http.Redirect(w, r, "/moved"+r.URL.RequestURI(), http.StatusTemporaryRedirect)
				return
			}
			stream(w, v.answer[0].events...)
		})
		res, err := ask(t, v.open(url), true)
		require.NoError(t, err)
		require.Equal(t, &v.answer[0].want, res)
	})
}

// An answer that is none is an error, and not nothing.
func TestAnEmptyAnswer(t *testing.T) {
	for i, body := range []string{`{"choices":[{"message":{}}]}`, `{"content":[]}`, `{"candidates":[{}]}`} {
		v := vendors()[i]
		t.Run(v.name, func(t *testing.T) {
			res, err := ask(t, v.open("http://x", func(c *endpoint.Config) { c.Transport, c.Retry.Attempts = memory{"application/json", []byte(body)}, 1 }), false)
			require.Nil(t, res)
			require.Equal(t, toolerr.ModelError, toolerr.CodeOf(err), "%v", err)
		})
	}
	t.Run("a stream", func(t *testing.T) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, "data: {\"type\":\"message_stop\"}\n\n") })
		res, err := ask(t, vendors()[1].open(url), true)
		require.Nil(t, res)
		require.ErrorContains(t, err, "neither content nor a finish reason")
		require.Equal(t, toolerr.ModelError, toolerr.CodeOf(err))
	})
}

func TestAMissingKeyIsTold(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	_, _, err := endpoint.New(endpoint.Config{Name: "p", BaseURL: url, KeyEnv: "THE_KEY"}).Get(t.Context(), "/models")
	require.EqualError(t, err, "p: 401 Unauthorized; the variable THE_KEY is not set")
}

// memory answers from memory.
type memory struct {
	kind string
	body []byte
}

func (m memory) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {m.kind}}, Body: io.NopCloser(bytes.NewReader(m.body))}, nil
}

// Whatever a server sends, the pieces are the answer, and an error has a code.
func FuzzAnswers(f *testing.F) {
	all := vendors()
	for i, v := range all {
		for _, x := range v.answer {
			f.Add(uint8(i), true, []byte(strings.Join(x.events, "")))
			f.Add(uint8(i), false, []byte(x.whole))
		}
	}
	f.Add(uint8(1), true, []byte("data: {\"type\":\"message_stop\"}\n\n"))
	f.Fuzz(func(t *testing.T, i uint8, streamed bool, body []byte) {
		kind := "application/json"
		if streamed {
			kind = "text/event-stream"
		}
		m := all[int(i)%len(all)].open("http://x", func(c *endpoint.Config) { c.Transport, c.Retry.Attempts = memory{kind, body}, 1 })
		var s llm.ResponseBuilder
		res, err := m.Ask(t.Context(), question(), s.Add)
		s.FinishCalls()
		if err == nil {
			require.NotNil(t, res)
		} else {
			require.Contains(t, []toolerr.Code{toolerr.TransportError, toolerr.ModelError, toolerr.RateLimited, toolerr.AuthFailed, toolerr.InvalidInput, toolerr.LimitReached}, toolerr.CodeOf(err))
		}
		if res != nil {
			want, err := json.Marshal(res.Parts)
			require.NoError(t, err)
			got, err := json.Marshal(s.Response.Parts)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(got))
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, v.answer[1].events...) })
		m := v.open(url)
		var all sync.WaitGroup
		wrong := make(chan string, 20)
		for range 20 {
			all.Go(func() {
				res, err := m.Ask(t.Context(), question(), func(llm.Delta) {})
				if err != nil || len(res.Calls()) != len(v.answer[1].want.Calls()) {
					wrong <- fmt.Sprint(res, err)
				}
			})
		}
		all.Wait()
		require.Empty(t, wrong)
	})
}
