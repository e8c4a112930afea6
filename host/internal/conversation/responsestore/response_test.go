package responsestore_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// testBook is a book with a clock that a test sets.
type testBook struct {
	*responsestore.Store
	now time.Time
}

func newBook(change func(*responsestore.Store)) *testBook {
	s := &testBook{now: time.Unix(1e9, 0)}
	kept := memory.New(memory.Config{Now: func() time.Time { return s.now }})
	s.Store = &responsestore.Store{Keys: kept.Keys, Blobs: kept.Blobs, Now: func() time.Time { return s.now }}
	if change != nil {
		change(s.Store)
	}
	return s
}

// add stores a response with a text that continues another one.
func (s *testBook) add(t *testing.T, id, previous, text string) error {
	t.Helper()
	var before int64
	if previous != "" {
		var err error
		if _, before, err = s.Chain(t.Context(), previous); err != nil {
			return err
		}
	}
	return s.Create(t.Context(), responsestore.Response{ID: id, Previous: previous, Chain: before}, responsestore.Content{
		Body:     json.RawMessage(`{}`),
		Messages: []llm.Message{{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}}},
	})
}

func (s *testBook) texts(t *testing.T, id string) (string, error) {
	t.Helper()
	messages, _, err := s.Chain(t.Context(), id)
	all := ""
	for _, m := range messages {
		all += m.Parts[0].Text + " "
	}
	return all, err
}

func TestAChain(t *testing.T) {
	s := newBook(nil)
	long := strings.Repeat("x", 600<<10) // a blob
	require.NoError(t, s.add(t, "resp_a", "", "a"))
	require.NoError(t, s.add(t, "resp_b", "resp_a", long))
	require.NoError(t, s.add(t, "resp_c", "resp_b", "c"))
	require.NoError(t, s.add(t, "resp_d", "resp_a", "d"))
	text, err := s.texts(t, "resp_c")
	require.NoError(t, err)
	require.Equal(t, "a "+long+" c ", text)
	text, err = s.texts(t, "resp_d")
	require.NoError(t, err)
	require.Equal(t, "a d ", text)
	require.NoError(t, s.Delete(t.Context(), "resp_b"))
	_, err = s.texts(t, "resp_c")
	require.True(t, toolerr.Is(err, toolerr.NotFound))
	require.ErrorContains(t, err, "resp_b")
	for _, id := range []string{"resp_b", "", "a/b", "*", strings.Repeat("x", 300), "é"} {
		_, _, err = s.Get(t.Context(), id)
		require.True(t, toolerr.Is(err, toolerr.NotFound), id)
		require.True(t, toolerr.Is(s.Delete(t.Context(), id), toolerr.NotFound), id)
	}
}

// A response expires after 30 days without use, and using one uses all of its chain.
func TestAge(t *testing.T) {
	s := newBook(nil)
	require.NoError(t, s.add(t, "resp_a", "", "a"))
	require.NoError(t, s.add(t, "resp_b", "resp_a", "b"))
	require.NoError(t, s.add(t, "resp_other", "", "c"))
	for range 3 {
		s.now = s.now.Add(20 * 24 * time.Hour)
		text, err := s.texts(t, "resp_b")
		require.NoError(t, err)
		require.Equal(t, "a b ", text)
	}
	_, err := s.texts(t, "resp_other")
	require.True(t, toolerr.Is(err, toolerr.NotFound))
	s.now = s.now.Add(31 * 24 * time.Hour)
	_, err = s.texts(t, "resp_b")
	require.True(t, toolerr.Is(err, toolerr.NotFound))
}

// The least recently used responses are deleted when there are too many, or too many
// bytes; a conversation that is too long is not continued.
func TestBounds(t *testing.T) {
	count := func(s *testBook, n int) (found int, last string) {
		for i := range n {
			if _, err := s.texts(t, fmt.Sprintf("resp_%d", i)); err == nil {
				found++
				last = fmt.Sprint(i)
			}
		}
		return found, last
	}
	for name, bound := range map[string]func(*responsestore.Store){
		"responses": func(b *responsestore.Store) { b.MaxResponses = 10 },
		"bytes":     func(b *responsestore.Store) { b.MaxTotal = 10 << 10 },
		"blobs":     func(b *responsestore.Store) { b.MaxTotal = 10 << 20 },
	} {
		s := newBook(bound)
		text := strings.Repeat("x", 1<<10)
		if name == "blobs" {
			text = strings.Repeat("x", 1<<20)
		}
		for i := range 50 {
			s.now = s.now.Add(time.Second)
			require.NoError(t, s.add(t, fmt.Sprintf("resp_%d", i), "", text))
		}
		found, last := count(s, 50)
		require.Equal(t, "49", last, name)
		require.GreaterOrEqual(t, found, 6, name)
		require.Less(t, found, 22, name)
	}
	s := newBook(func(b *responsestore.Store) { b.MaxConversation = 1 << 10 })
	require.NoError(t, s.add(t, "resp_a", "", strings.Repeat("x", 2<<10)))
	require.True(t, toolerr.Is(s.add(t, "resp_b", "resp_a", "b"), toolerr.LimitReached))
}
