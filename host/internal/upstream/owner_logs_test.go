package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A log message during the request of one caller may belong to an earlier request of another:
// a user, a caller with the host's own token, or a client with another profile. Then nobody
// gets it.
func TestLogsOfSeveralOwnersReachNobody(t *testing.T) {
	t.Parallel()
	const ann, script, few = "ann", "", "few"
	caller := func(of string) call.Caller {
		if of == few {
			return call.Caller{EntryPoint: "http", ID: of, User: "ann", Profile: "few"}
		}
		return call.Caller{EntryPoint: "http", ID: of, User: of}
	}
	for _, two := range [][2]string{{ann, script}, {script, ann}, {ann, few}, {few, ann}} {
		var unowned []*call.Owner
		s := saying(t, nil, func(out io.Writer, id, _ string) {
			fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"for whom?"}}`)
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
		})
		s.OnNotification(func(_ string, _ json.RawMessage, first *call.Owner) { unowned = append(unowned, first) })
		callAs := func(of string, listens bool) (logs int) {
			r := request("t", `{}`)
			r.Caller = caller(of)
			if listens {
				r.OnNotify = func(string, json.RawMessage) { logs++ }
			}
			_, err := s.Call(t.Context(), r)
			require.NoError(t, err)
			return logs
		}
		require.Equal(t, 1, callAs(two[0], true))
		require.Empty(t, unowned)
		callAs(two[0], false)
		require.Len(t, unowned, 1)
		require.Equal(t, caller(two[0]).Owner(), *unowned[0], "the only owner so far")
		require.Zero(t, callAs(two[1], true), two)
		require.Zero(t, callAs(two[0], true), two)
		callAs(two[1], false)
		require.Len(t, unowned, 1)

		require.NoError(t, s.Reconnect(t.Context()))
		require.Zero(t, callAs(two[0], true), "a shared process can outlive a connection")
	}
}
