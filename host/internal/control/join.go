package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Join returns a server function (upstream.Config.Serve) that connects to the host whose
// socket is name, enters with a token, and forwards messages in both directions until one
// side ends, or ctx. The function returns an error only if it could not enter.
func Join(name, token string) func(ctx context.Context, in io.Reader, out io.Writer) error {
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		conn, err := dial(ctx, name)
		if err != nil {
			return fmt.Errorf("the host at %s does not answer: %w", name, err)
		}
		defer conn.Close()                                                           //nolint:errcheck // all is said
		defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })() //nolint:errcheck // it is closed
		params, err := jsonrpc.Marshal(map[string]string{"token": token})
		if err != nil {
			return err
		}
		if err := writeLine(conn, jsonrpc.AppendRequest(nil, json.RawMessage("0"), Enter, params)); err != nil {
			return err
		}
		answers := bufio.NewReader(conn)
		line, err := answers.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("the host at %s did not let this agent in: %w", name, err)
		}
		m, err := jsonrpc.Split(bytes.Clone(bytes.TrimSpace(line)))
		if err != nil {
			return err
		}
		if m.Error != nil {
			return parseError(m.Error)
		}
		said := make(chan struct{})
		go func() { // ends with in or with the connection
			defer close(said)
			io.Copy(conn, in) //nolint:errcheck // the end of either is the end of both
			conn.Close()      //nolint:errcheck // the answers are not read any more
		}()
		io.Copy(out, answers) //nolint:errcheck // likewise
		conn.Close()          //nolint:errcheck // it may be closed
		if c, ok := in.(io.Closer); ok {
			c.Close() //nolint:errcheck // so that nothing more is sent
		}
		<-said
		return nil
	}
}
