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

// Limits of the command that prints a token.
const (
	commandTimeout = 30 * time.Second
	cacheLifetime  = 5 * time.Minute // tokens of gcloud are valid for an hour, of which a part can be over
	maxToken       = 16 << 10
)

// tokenCommand provides access tokens that a command prints.
type tokenCommand struct {
	name    string // name of the provider
	command []string

	minAge time.Duration // a refused token is replaced only if it is older

	slot       chan struct{} // holds one item while the command runs
	token      string        // last token; "": none
	obtainedAt time.Time
}

// authorize sets the header Authorization. refused means that the server refused the
// last token, so that a new one is needed; for that the command runs at most once in
// minAge.
func (t *tokenCommand) authorize(ctx context.Context, h http.Header, refused bool) error {
	select {
	case t.slot <- struct{}{}:
		defer func() { <-t.slot }()
	case <-ctx.Done():
		return provider.ContextError(ctx)
	}
	if t.token == "" || refused && time.Since(t.obtainedAt) > t.minAge || time.Since(t.obtainedAt) > cacheLifetime {
		token, err := t.run(ctx)
		if err != nil {
			return err
		}
		t.token, t.obtainedAt = token, time.Now()
	}
	h.Set("Authorization", "Bearer "+t.token)
	return nil
}

// run runs the command and returns the token. Its standard output never appears in an
// error.
func (t *tokenCommand) run(ctx context.Context) (string, error) {
	timed, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	out, complaint := &limitedBuffer{max: maxToken}, &limitedBuffer{max: 1 << 10}
	cmd := exec.CommandContext(timed, t.command[0], t.command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, complaint, time.Second
	err := cmd.Run()
	if ended := provider.ContextError(ctx); ended != nil {
		return "", ended
	}
	token := strings.TrimSpace(out.String())
	switch {
	case timed.Err() != nil:
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) took more than %v", t.name, t.command[0], commandTimeout)
	case err != nil:
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) failed: %v: %s", t.name, t.command[0], err, redact.Text(strings.ToValidUTF8(line, "?")))
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", toolerr.New(toolerr.AuthFailed, "%s: the token command (%s) wrote no token", t.name, t.command[0])
	}
	return token, nil
}

// limitedBuffer keeps the first max bytes that are written.
type limitedBuffer struct {
	bytes.Buffer
	max int
}

// Write keeps at most max bytes and drops the rest. It never fails.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := b.max - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
