package conversation_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func bookOf(s *store.Store) *conversation.Store {
	return &conversation.Store{Keys: s.Keys, Log: s.Log, Blobs: s.Blobs}
}

func newBook(t *testing.T) *conversation.Store {
	t.Helper()
	return bookOf(memory.New(memory.Config{}))
}

func said(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Parts: []llm.Part{{Type: llm.TextPart, Text: text}}}
}

// called is a call and its result.
func called(id string) []llm.Message {
	return []llm.Message{
		{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: id, Name: "ls", Args: []byte(`{}`)}}}},
		{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: id, Name: "ls", Content: said("", "a.go").Parts}}}},
	}
}

func texts(messages []llm.Message) []string {
	var all []string
	for _, m := range messages {
		text := string(m.Role)
		if len(m.Parts) > 0 {
			text += " " + m.Parts[0].Text
		}
		all = append(all, text)
	}
	return all
}

func TestASessionIsThereForEveryHostOfTheStore(t *testing.T) {
	dir := t.TempDir()
	open := func() (*conversation.Store, *store.Store) {
		s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
		return bookOf(s), s
	}
	one, first := open()
	s, err := one.Create(t.Context(), conversation.Session{Name: "names with \"quotes\" and ü", Model: "m"})
	require.NoError(t, err)
	history := append([]llm.Message{said(llm.UserRole, "what is here?")}, called("c1")...)
	history = append(history, said(llm.AssistantRole, "a.go"))
	s, err = one.Append(t.Context(), s.ID, history...)
	require.NoError(t, err)
	require.Equal(t, 4, s.Messages)
	require.Equal(t, 1, s.Turns)
	require.NoError(t, first.Close())

	two, second := open()
	defer func() { require.NoError(t, second.Close()) }()
	again, err := two.Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, s, again)
	read, err := two.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, history, read)
}

func TestTurnsOfManyHostsAreEachWhole(t *testing.T) {
	dir := t.TempDir()
	var books []*conversation.Store
	for range 2 {
		s := sqlite.New(sqlite.Config{Dir: dir, NoSync: true})
		defer func() { require.NoError(t, s.Close()) }()
		books = append(books, bookOf(s))
	}
	s, err := books[0].Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	const writers, turns = 4, 5
	var all sync.WaitGroup
	fault := make(chan error, writers*turns)
	for w := range writers {
		all.Go(func() {
			for i := range turns {
				id := fmt.Sprintf("%d.%d", w, i)
				_, err := books[w%2].Append(t.Context(), s.ID, append([]llm.Message{said(llm.UserRole, id)}, called(id)...)...)
				fault <- err
			}
		})
	}
	all.Wait()
	close(fault)
	for err := range fault {
		require.NoError(t, err)
	}
	messages, err := books[1].Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Len(t, messages, 3*writers*turns)
	next := map[string]int{}
	for i := 0; i < len(messages); i += 3 {
		id := messages[i].Parts[0].Text
		require.Equal(t, id, messages[i+1].Parts[0].ToolCall.ID)
		require.Equal(t, id, messages[i+2].Parts[0].ToolResult.ID)
		writer, n, _ := strings.Cut(id, ".")
		require.Equal(t, fmt.Sprint(next[writer]), n)
		next[writer]++
	}
	s, err = books[0].Get(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, writers*turns, s.Turns)
	require.Equal(t, len(messages), s.Messages)
}

func TestLongTurnsAreBlobsAndGoWithTheSession(t *testing.T) {
	kept := memory.New(memory.Config{})
	b := bookOf(kept)
	s, err := b.Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	picture := llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.ImagePart, Media: &llm.Media{MIME: "image/png", Data: strings.Repeat("QUJD", 1<<20)}}}}
	_, err = b.Append(t.Context(), s.ID, picture, said(llm.AssistantRole, "many letters"))
	require.NoError(t, err)
	messages, err := b.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, picture, messages[0])

	fork, err := b.Fork(t.Context(), s.ID, "fork", 0)
	require.NoError(t, err)
	require.NoError(t, b.Delete(t.Context(), s.ID))
	messages, err = b.Messages(t.Context(), fork.ID)
	require.NoError(t, err)
	require.Equal(t, picture, messages[0], "a fork has its own")
	require.NoError(t, b.Delete(t.Context(), fork.ID))
	removed, err := kept.Blobs.Trim(t.Context(), store.Retention{Bytes: 1})
	require.NoError(t, err)
	require.Zero(t, removed, "blobs of deleted sessions are left")
	_, err = b.Messages(t.Context(), s.ID)
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
}

func TestAForkCutsNoCallFromItsResult(t *testing.T) {
	b := newBook(t)
	s, err := b.Create(t.Context(), conversation.Session{Name: "first", Model: "m"})
	require.NoError(t, err)
	_, err = b.Append(t.Context(), s.ID, said(llm.UserRole, "one"), said(llm.AssistantRole, "1"))
	require.NoError(t, err)
	_, err = b.Append(t.Context(), s.ID, append([]llm.Message{said(llm.UserRole, "two")}, called("c")...)...)
	require.NoError(t, err)
	for n, want := range map[int][]string{1: {"user one"}, 2: {"user one", "assistant 1"}, 3: {"user one", "assistant 1", "user two"}, 5: nil, 0: nil} {
		fork, err := b.Fork(t.Context(), s.ID, "", n)
		require.NoError(t, err, n)
		require.Equal(t, "first", fork.Name)
		require.Equal(t, s.ID, fork.Parent)
		require.Equal(t, "m", fork.Model)
		messages, err := b.Messages(t.Context(), fork.ID)
		require.NoError(t, err)
		if want != nil {
			require.Equal(t, want, texts(messages))
		} else {
			require.Len(t, messages, 5)
		}
	}
	for _, n := range []int{4, 6, -1} {
		_, err := b.Fork(t.Context(), s.ID, "", n)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), n)
	}
	messages, err := b.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Len(t, messages, 5, "the first is as it was")
}

func TestWhatIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	kept := memory.New(memory.Config{Now: clock})
	b := bookOf(kept)
	b.Now, b.Size, b.Most, b.Age = clock, 1000, 3, time.Hour
	var forgot []string
	b.OnRemoved = func(s conversation.Session, most int) { forgot = append(forgot, fmt.Sprint(s.Name, " of ", most)) }
	var ids []string
	for i := range 4 {
		now = now.Add(time.Minute)
		s, err := b.Create(t.Context(), conversation.Session{Name: fmt.Sprint(i)})
		require.NoError(t, err)
		ids = append(ids, s.ID)
	}
	require.Equal(t, []string{"0 of 3"}, forgot)
	_, err := b.Get(t.Context(), ids[0])
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), "of too many the one used longest ago is forgotten")
	_, err = b.Append(t.Context(), ids[1], said(llm.UserRole, strings.Repeat("x", 900)))
	require.NoError(t, err)
	_, err = b.Append(t.Context(), ids[1], said(llm.UserRole, strings.Repeat("x", 900)))
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))

	now = now.Add(59 * time.Minute)
	_, err = b.Append(t.Context(), ids[3], said(llm.UserRole, "still there"))
	require.NoError(t, err)
	now = now.Add(2 * time.Minute)
	all, err := b.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1, "what is not used is forgotten")
	require.Equal(t, ids[3], all[0].ID)
}

func TestTheNewestComesFirstAndIsFoundByName(t *testing.T) {
	b := newBook(t)
	now := time.Now()
	b.Now = func() time.Time { now = now.Add(time.Second); return now }
	one, err := b.Create(t.Context(), conversation.Session{Name: "one"})
	require.NoError(t, err)
	two, err := b.Create(t.Context(), conversation.Session{Name: "two"})
	require.NoError(t, err)
	_, err = b.Rename(t.Context(), one.ID, "eins")
	require.NoError(t, err)
	_, err = b.SetModel(t.Context(), one.ID, "m2")
	require.NoError(t, err)
	all, err := b.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{one.ID, two.ID}, []string{all[0].ID, all[1].ID})
	for _, text := range []string{"eins", one.ID, one.ID[:12], strings.TrimPrefix(one.ID, "sess_")[:8]} {
		found, err := b.Find(t.Context(), text)
		require.NoError(t, err, text)
		require.Equal(t, one.ID, found.ID)
		require.Equal(t, "m2", found.Model)
	}
	_, err = b.Find(t.Context(), "sess_")
	require.Equal(t, toolerr.NotUnique, toolerr.CodeOf(err))
	for _, text := range []string{"", "one", "*", "a/b", strings.Repeat("x", 300), "ü", "\x00"} {
		_, err := b.Find(t.Context(), text)
		require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), text)
	}
	for _, name := range []string{"a\nb", strings.Repeat("x", 201), "\xff", "\x1b[31m"} {
		_, err := b.Rename(t.Context(), one.ID, name)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
		_, err = b.Create(t.Context(), conversation.Session{Name: name})
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), "%q", name)
	}
}

// If a host is killed between a turn and the record of its usage, the turn is counted
// by the next one.
func TestWhatWasNotCountedIsCountedLater(t *testing.T) {
	kept := memory.New(memory.Config{})
	b := bookOf(kept)
	s, err := b.Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	_, err = kept.Log.Append(t.Context(), "session/"+s.ID, []byte(`{"count":1,"bytes":10,"messages":[{"role":"user","parts":[{"type":"text","text":"a"}]}]}`))
	require.NoError(t, err)
	s, err = b.Append(t.Context(), s.ID, said(llm.AssistantRole, "b"))
	require.NoError(t, err)
	require.Equal(t, 2, s.Messages)
	require.Equal(t, 2, s.Turns)
}

// A trimmed history begins with a message of the user, so that no result
// is without its call.
func TestATrimmedHistoryIsStillOne(t *testing.T) {
	kept := memory.New(memory.Config{})
	b := bookOf(kept)
	s, err := b.Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	_, err = b.Append(t.Context(), s.ID, said(llm.UserRole, strings.Repeat("x", 2000)), called("c")[0])
	require.NoError(t, err)
	_, err = b.Append(t.Context(), s.ID, called("c")[1], said(llm.AssistantRole, "done"), said(llm.UserRole, "next"), said(llm.AssistantRole, "yes"))
	require.NoError(t, err)
	_, err = kept.Log.Trim(t.Context(), "*", store.Retention{Bytes: 1000})
	require.NoError(t, err)
	messages, err := b.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"user next", "assistant yes"}, texts(messages))
}

func TestADeletedSessionIsGoneAlsoForWhoAppends(t *testing.T) {
	b := newBook(t)
	for range 20 {
		s, err := b.Create(t.Context(), conversation.Session{})
		require.NoError(t, err)
		var all sync.WaitGroup
		var gone, added error
		all.Go(func() { _, added = b.Append(t.Context(), s.ID, said(llm.UserRole, "x")) })
		all.Go(func() { gone = b.Delete(t.Context(), s.ID) })
		all.Wait()
		require.NoError(t, gone)
		if added != nil {
			require.True(t, toolerr.Is(added, toolerr.NotFound), errors.Unwrap(added))
		}
		left, err := b.Log.Read(t.Context(), "session/"+s.ID, 0, 10)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// A part that is taken back is not there, for nobody and in no count; what others have
// appended between its records stays.
func TestAPartIsTakenBack(t *testing.T) {
	b := newBook(t)
	s, err := b.Create(t.Context(), conversation.Session{})
	require.NoError(t, err)
	_, err = b.Append(t.Context(), s.ID, said(llm.UserRole, "q"), said(llm.AssistantRole, "a"))
	require.NoError(t, err)
	before, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	_, err = b.AppendPart(t.Context(), s.ID, "p", said(llm.UserRole, strings.Repeat("long ", 200_000)))
	require.NoError(t, err)
	other, err := b.Append(t.Context(), s.ID, said(llm.UserRole, "other"))
	require.NoError(t, err)
	_, err = b.AppendPart(t.Context(), s.ID, "p", called("c")...)
	require.NoError(t, err)
	messages, err := b.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Len(t, messages, 6)

	after, err := b.RemovePart(t.Context(), s.ID, "p")
	require.NoError(t, err)
	require.Equal(t, before.Messages+1, after.Messages)
	require.Less(t, after.Bytes, other.Bytes)
	messages, err = b.Messages(t.Context(), s.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"user q", "assistant a", "user other"}, texts(messages))
	_, err = b.AppendPart(t.Context(), s.ID, "p2", said(llm.UserRole, "next"))
	require.NoError(t, err)
	for _, part := range []string{"p", "nosuch", ""} {
		_, err = b.RemovePart(t.Context(), s.ID, part)
		require.NoError(t, err)
		last, err := b.Get(t.Context(), s.ID)
		require.NoError(t, err)
		require.Equal(t, before.Messages+2, last.Messages, "what is not there is not undone: %q", part)
		require.Greater(t, last.Bytes, after.Bytes)
	}
	fork, err := b.Fork(t.Context(), s.ID, "", 0)
	require.NoError(t, err)
	messages, err = b.Messages(t.Context(), fork.ID)
	require.NoError(t, err)
	require.Equal(t, []string{"user q", "assistant a", "user other", "user next"}, texts(messages))
	_, err = b.RemovePart(t.Context(), "sess_nosuch", "p")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
}
