package core

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// answer is an answer of a client to a question; err ends it without an answer.
type answer struct {
	action string
	err    error
}

// callOf returns a call of a client, whose questions are counted in asked and answered from
// answers.
func callOf(client string, asked *int, answers <-chan answer) *call.Request {
	return &call.Request{Tool: &call.Tool{Name: "s__t", Server: "s"}, Caller: call.Caller{EntryPoint: "stdio", ID: client}, Ask: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		*asked++
		select {
		case a := <-answers:
			return json.RawMessage(`{"action":"` + a.action + `"}`), a.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// beginSignIn returns a running sign-in that offers its link. refused is set when it is refused.
func beginSignIn() (one *signIn, refused *bool) {
	one, _ = new(signIns).joinOrBegin("s", 0)
	refused = new(bool)
	one.offer("https://login.example.com/", func() { *refused = true }, func() {})
	return one, refused
}

func TestClientIsAskedOnceToOpenALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, refused := beginSignIn()
		asked, answers, results := 0, make(chan answer), make(chan bool, 3)
		for range 3 {
			go func() { results <- one.askClient(t.Context(), callOf("a", &asked, answers), "s") }()
		}
		synctest.Wait()
		require.Equal(t, 1, asked)
		require.Empty(t, results)
		answers <- answer{action: "accept"}
		for range 3 {
			require.True(t, <-results)
		}
		require.Equal(t, 1, asked)
		require.False(t, *refused)
	})
}

func TestEachClientIsAskedToOpenALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, refused := beginSignIn()
		asked, results := 0, make(chan bool, 2)
		first, second := make(chan answer), make(chan answer)
		go func() { results <- one.askClient(t.Context(), callOf("a", &asked, first), "s") }()
		synctest.Wait()
		go func() { results <- one.askClient(t.Context(), callOf("b", &asked, second), "s") }()
		synctest.Wait()
		require.Equal(t, 2, asked)
		first <- answer{action: "decline"}
		require.False(t, <-results)
		require.False(t, *refused, "the other client may still open it")
		second <- answer{err: errors.New("the client is gone")}
		require.False(t, <-results)
		synctest.Wait()
		require.True(t, *refused)
	})
}

// A sign-in goes on if the call that began it ends, and the next call asks again.
func TestLinkOfACallThatHasEnded(t *testing.T) {
	for _, opened := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			one, refused := beginSignIn()
			asked, answers, results := 0, make(chan answer, 1), make(chan bool, 1)
			ctx, cancel := context.WithCancel(t.Context())
			first := callOf("a", &asked, answers)
			if opened {
				answers <- answer{action: "accept"}
			}
			go func() { results <- one.askClient(ctx, first, "s") }()
			synctest.Wait()
			cancel()
			require.True(t, <-results)
			one.forgetQuestion(first)
			require.False(t, *refused)

			answers <- answer{action: "accept"}
			require.True(t, one.askClient(t.Context(), callOf("a", &asked, answers), "s"))
			require.Equal(t, 2, asked)
		})
	}
}

// The time of a sign-in begins again with each question, and a refusal is forgotten with its call.
func TestClientThatHasRefusedALinkIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, _ := new(signIns).joinOrBegin("s", 0)
		prolonged, refused := 0, false
		one.offer("https://login.example.com/", func() { refused = true }, func() { prolonged++ })
		asked := 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { ended <- one.askClient(ctx, callOf("b", &asked, nil), "s") }()
		synctest.Wait()
		answers := make(chan answer, 2)
		answers <- answer{action: "decline"}
		require.False(t, one.askClient(t.Context(), callOf("a", &asked, answers), "s"))
		cancel()
		require.True(t, <-ended)
		answers <- answer{action: "accept"}
		require.True(t, one.askClient(t.Context(), callOf("a", &asked, answers), "s"))
		require.Equal(t, []any{3, 3, false}, []any{asked, prolonged, refused})

		answers <- answer{action: "decline"}
		require.False(t, one.askClient(t.Context(), callOf("c", &asked, answers), "s"))
		require.False(t, refused, "the user of another client is at the provider")
	})
}

// The end of the sign-in ends the questions.
func TestQuestionOfASignInThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s signIns
		one, _ := s.joinOrBegin("s", 0)
		asked, results := 0, make(chan bool, 2)
		go func() { results <- one.askClient(t.Context(), callOf("a", &asked, nil), "s") }()
		synctest.Wait()
		require.Zero(t, asked, "no link is offered yet")
		one.offer("https://login.example.com/", func() {}, func() {})
		synctest.Wait()
		require.Equal(t, 1, asked)
		s.finish("s", one, nil)
		require.True(t, <-results)
		failed, _ := s.joinOrBegin("s", s.count.Load())
		s.finish("s", failed, errors.New("the provider does not answer"))
		require.True(t, failed.askClient(t.Context(), callOf("a", &asked, nil), "s"), "the call gets the error")
		require.Equal(t, 1, asked)
	})
}
