package cli

import (
	"encoding/json"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// checkLoop returns a *nesting.LoopError if this host was started below a host with the same
// marks, so that the hosts would start each other without end.
func (p *program) checkLoop(cfg config.Config) error {
	marks := cfg.Marks()
	if len(marks) == 0 {
		return nil
	}
	return nesting.CheckLoop(config.HostsAbove(p.environ), marks, p.serves)
}

// refuseClient answers every request with the reason, until the client closes the connection,
// and returns it as an exit error. The host above shows it as the server's failure and does not
// start the server again.
func (p *program) refuseClient(reason error) error {
	lines := jsonrpc.NewReader(p.in, 0)
	for {
		line, err := lines.ReadLine()
		if err != nil {
			return withStatus(exitFailed, reason)
		}
		m, err := jsonrpc.Split(line)
		if err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		if err := p.writeMessage(jsonrpc.AppendError(nil, m.ID, nesting.LoopErrorCode, reason.Error())); err != nil {
			return err
		}
	}
}

// writeMessage writes a message and a line end to the client.
func (p *program) writeMessage(message json.RawMessage) error {
	if _, err := p.out.Write(append(message, '\n')); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}
