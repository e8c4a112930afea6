package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

func TestCompletionsBelongToWhoWasAsked(t *testing.T) {
	var e elicitations
	params := func(id string) json.RawMessage { return fmt.Appendf(nil, `{"mode":"url","elicitationId":%q}`, id) }
	e.record("s", params("a"), "ann")
	e.record("s", params("b"), "bob")
	e.record("other", params("a"), "bob")
	e.record("s", json.RawMessage(`{"message":"a form"}`), "eve")
	e.recordError(fmt.Errorf("call: %w", &call.MCPError{Server: "s", Code: -32042, Object: json.RawMessage(`{"code":-32042,"message":"m","data":{"elicitations":[{"elicitationId":"c"},{"elicitationId":"d"}]}}`)}), "ann")
	e.recordError(errors.New("elicitationId"), "eve")
	e.recordError(nil, "eve")
	for id, client := range map[string]string{"a": "ann", "b": "bob", "c": "ann", "d": "ann", "e": ""} {
		require.Equal(t, client, e.take("s", params(id)), id)
		require.Empty(t, e.take("s", params(id)), "it is complete once")
	}
	require.Equal(t, "bob", e.take("other", params("a")), "another server's id is another elicitation")
	require.Empty(t, e.take("other", params("a")))
	for i := range 2 * maxElicited {
		e.record("s", params(fmt.Sprint(i)), "ann")
	}
	require.Len(t, e.clients, maxElicited)
}

func TestClientsOfUsersAndProfilesAreMixed(t *testing.T) {
	var c legacyClients
	require.False(t, c.areMixed())
	c.set("1", legacyClient{profile: "few"})
	c.set("2", legacyClient{profile: "few"})
	require.False(t, c.areMixed())
	c.set("3", legacyClient{})
	require.True(t, c.areMixed())
	c.delete("1")
	c.delete("2")
	require.True(t, c.areMixed(), "a server may still work for clients that have left")

	var users legacyClients
	users.set("4", legacyClient{user: "ann"})
	require.True(t, users.areMixed())
}
