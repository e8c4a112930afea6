package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mostAsked    = 32
	tooManyAsked = "LIMIT_REACHED: 32 questions wait for the client's answers; the client must answer some first"
)

// A client that leaves questions unanswered is asked no more after some, and
// no other client suffers from it.
func TestTheQuestionsBeforeALegacyClientAreBounded(t *testing.T) {
	g, _ := openWorld(t)
	c := dial(t, g)
	c.send(t, hello(`{"elicitation":{}}`))
	c.next(t)
	var asked []string
	for id := range mostAsked {
		c.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask"}}`, id+1))
		asked = append(asked, c.next(t))
		require.Contains(t, asked[id], "elicitation/create")
	}
	again := `{"jsonrpc":"2.0","id":"more","method":"tools/call","params":{"name":"ask"}}`
	c.send(t, again)
	require.Contains(t, c.next(t), tooManyAsked)
	c.send(t, `{"jsonrpc":"2.0","id":`+idOf(t, asked[3])+`,"result":{"action":"decline"}}`)
	require.Contains(t, c.next(t), `{"jsonrpc":"2.0","id":4,"result":`)
	c.send(t, again)
	require.Contains(t, c.next(t), "elicitation/create", "one has been answered")
}

func TestTheQuestionsParkedForAModernClientAreBounded(t *testing.T) {
	g, _ := openWorld(t)
	c := dial(t, g)
	var state string
	for id := range mostAsked {
		line, _ := modern(id+1, "tools/call", "ask", `"name":"ask"`, `{"elicitation":{}}`)
		c.send(t, line)
		var asked struct {
			Result struct{ ResultType, RequestState string }
		}
		require.NoError(t, json.Unmarshal([]byte(c.next(t)), &asked))
		require.Equal(t, "input_required", asked.Result.ResultType)
		state = asked.Result.RequestState
	}
	more, headers := modern(100, "tools/call", "ask", `"name":"ask"`, `{"elicitation":{}}`)
	c.send(t, more)
	require.Contains(t, c.next(t), tooManyAsked)

	_, body, _ := serve(t, g).post(t, more, headers...)
	require.Contains(t, body, "input_required", "another client is asked")

	line, _ := modern(101, "tools/call", "ask", `"name":"ask","inputResponses":{"q1":{"action":"decline"}},"requestState":"`+state+`"`, `{"elicitation":{}}`)
	c.send(t, line)
	require.Contains(t, c.next(t), `"answered":{"action":"decline"}`)
	c.send(t, strings.Replace(more, `"id":100`, `"id":102`, 1))
	require.Contains(t, c.next(t), "input_required", "one has been answered")
}

// TestMalformedAnswersLeaveTheQuestion: after answers that are no object, the client can
// still answer.
func TestMalformedAnswersLeaveTheQuestion(t *testing.T) {
	g, _ := openWorld(t)
	c := dial(t, g)
	line, _ := modern(1, "tools/call", "ask", `"name":"ask"`, `{"elicitation":{}}`)
	c.send(t, line)
	var asked struct {
		Result struct{ RequestState string }
	}
	require.NoError(t, json.Unmarshal([]byte(c.next(t)), &asked))
	answer := func(id int, responses string) string {
		line, _ := modern(id, "tools/call", "ask", `"name":"ask","inputResponses":`+responses+`,"requestState":"`+asked.Result.RequestState+`"`, `{"elicitation":{}}`)
		c.send(t, line)
		return c.next(t)
	}
	require.Contains(t, answer(2, `[]`), "inputResponses must be an object")
	require.Contains(t, answer(3, `{"q1":{"action":"decline"}}`), `"answered":{"action":"decline"}`)
}
