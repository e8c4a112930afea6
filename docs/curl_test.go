package docs_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/interp"
)

// curl makes the request that a curl command of a page describes. It knows
// the flags that the pages use, and fails where the answer is an error.
func curl(ctx context.Context, args []string) error {
	handler := interp.HandlerCtx(ctx)
	var url, body string
	header := http.Header{}
	for i := 1; i < len(args); i++ {
		flag := args[i]
		if !strings.HasPrefix(flag, "-") {
			url = flag
			continue
		}
		i++
		switch flag {
		case "-H":
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		case "-d":
			body = args[i]
		case "--data-binary":
			text, err := os.ReadFile(filepath.Join(handler.Dir, strings.TrimPrefix(args[i], "@")))
			if err != nil {
				return err
			}
			body = string(text)
		default:
			return fmt.Errorf("curl of the tests does not know %s", flag)
		}
	}
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(handler.Stdout, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s", method, url, res.Status)
	}
	return nil
}

// Blocks with the directive "serve" succeed against a running host.
func TestRequests(t *testing.T) {
	onlyUnix(t)
	printed := serve(t)
	base := strings.TrimSuffix(printed["url"], "/mcp")
	ran := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.directive != "serve" {
				continue
			}
			m := newMachine(t)
			_, err := m.run("export OPENAI_BASE_URL=" + base + "/v1 OPENAI_API_KEY=" + printed["token"])
			require.NoError(t, err)
			out, err := m.run(strings.NewReplacer("http://127.0.0.1:8080", base, "Bearer TOKEN", "Bearer "+printed["token"]).Replace(b.text))
			require.NoError(t, err, "%s:%d\n%s", page, b.line, out)
			if strings.Contains(b.text, "OPENAI_BASE_URL") {
				require.Contains(t, out, "the answer", "%s:%d", page, b.line)
			}
			ran++
		}
	}
	require.Positive(t, ran)
}
