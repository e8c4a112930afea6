package gemini

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The bounds of a command that writes a token.
const (
	tokenTime = 30 * time.Second
	tokenKept = 5 * time.Minute // gcloud's last an hour, of which some may be over
	maxToken  = 16 << 10
)

// tokens are the access tokens that a command writes.
type tokens struct {
	name    string // of the provider
	command []string

	fresh time.Duration // how old a token that was refused has to be to be made anew

	turn  chan struct{} // holds one: who runs the command
	token string
	at    time.Time
}

// authorize sets the header. After a refusal it gets a new token.
func (t *tokens) authorize(ctx context.Context, h http.Header, again bool) error {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return provider.Ended(ctx)
	}
	if t.token == "" || again && time.Since(t.at) > t.fresh || time.Since(t.at) > tokenKept {
		token, err := t.run(ctx)
		if err != nil {
			return err
		}
		t.token, t.at = token, time.Now()
	}
	h.Set("Authorization", "Bearer "+t.token)
	return nil
}

// run runs the command. Its standard output is never shown.
func (t *tokens) run(ctx context.Context) (string, error) {
	timed, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	out, complaint := &bounded{max: maxToken}, &bounded{max: 1 << 10}
	cmd := exec.CommandContext(timed, t.command[0], t.command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, complaint, time.Second
	err := cmd.Run()
	if ended := provider.Ended(ctx); ended != nil {
		return "", ended
	}
	token := strings.TrimSpace(out.String())
	switch {
	case timed.Err() != nil:
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) took more than %v", t.name, t.command[0], tokenTime)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) failed: %v: %s", t.name, t.command[0], err, redact.Text(strings.ToValidUTF8(line, "?")))
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) wrote no token", t.name, t.command[0])
	}
	return token, nil
}

// bounded keeps what is written first.
type bounded struct {
	bytes.Buffer
	max int
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.max - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
