package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

func (p *program) stdioCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "stdio [DIR...]",
		Short:   "Serve one MCP client on standard input and output",
		Long:    "Serve one MCP client on standard input and output. Each DIR is a root, as with --root.",
		Example: "  mcp-host stdio --root ~/project",
		Args:    argumentCount(0, math.MaxInt),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			p.flags.Roots = append(p.flags.Roots, dirs...)
			same := func(in io.Reader) io.Reader { return in }
			return p.serveStdio(cmd.Context(), same, func(out io.Writer) io.Writer { return out })
		},
	}
}

// serveStdio opens a host and serves one client on standard input and output until the
// client closes its input or ctx ends. If a provider is still renewing tokens then, the program ends
// later than its output. wrapIn and wrapOut wrap these streams.
func (p *program) serveStdio(ctx context.Context, wrapIn func(io.Reader) io.Reader, wrapOut func(io.Writer) io.Writer) error {
	p.serves = true
	core.BeginStartUp()
	a, err := p.open()
	var loop *nesting.LoopError
	if errors.As(err, &loop) {
		return p.refuseClient(loop)
	}
	if err != nil {
		return err
	}
	if stdout, ok := p.out.(*os.File); ok {
		var stop func()
		ctx, stop = wire.Lifetime(ctx, stdout)
		defer stop()
		a.OnWait(func() {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // clients send it soon after the end of the input
			stop()
			stdout.Close() //nolint:errcheck // nothing is written any more
			p.noticeWait()
		})
	}
	defer a.Close()
	p.openControlSocket(a, "stdio")
	a.StartBackground()
	defer time.AfterFunc(usualStartDuration, a.EndStartUp).Stop()
	defer p.followConfig(ctx, a)()
	err = a.Gateway.ServeStdio(ctx, wrapIn(wire.PollableReader(p.in)), wrapOut(p.out), p.logf)
	if err != nil && !errors.Is(err, wire.ErrStopped) {
		return withStatus(exitFailed, err)
	}
	return nil
}

// usualStartDuration is the usual time for a host to start its servers and list their tools.
const usualStartDuration = 5 * time.Second

// serveFlags are the flags of serve.
type serveFlags struct {
	listen    string
	tokenFile string
	noToken   bool
	hosts     []string
	log       logFlags
}

func (p *program) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP over streamable HTTP, and print URL and token",
		Long: `serve answers MCP at http://ADDRESS/mcp, the APIs of OpenAI (/v1/chat/completions,
/v1/responses) and Anthropic (/v1/messages) with the host's tools, and metrics for
Prometheus at /metrics. Requests need the header "Authorization: Bearer TOKEN".
/openapi.json describes the API. /healthz needs no token.

The token comes from --token-file or TOOLROOM_TOKEN. Without these, the first start
creates one and stores it in the state directory. Standard error gets one line per
finished call: time, caller, tool, server, outcome, milliseconds and result bytes.`,
		Example: "  mcp-host serve\n  mcp-host serve --listen 0.0.0.0:8080 --token-file token",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.serves = true
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error { return p.runServe(ctx, a, f) })
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen on; other than loopback it needs --token-file")
	cmd.Flags().StringVar(&f.tokenFile, "token-file", "", "read the token from `FILE`")
	cmd.Flags().BoolVar(&f.noToken, "no-token", false, "require no token; on loopback only")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "accept requests for the host `NAME[:PORT]`; repeatable")
	f.log.add(cmd)
	return cmd
}

// runServe serves over HTTP until ctx ends. It refuses to listen on other than loopback
// addresses without a token that the user chose, or sign-in.
func (p *program) runServe(ctx context.Context, a *core.App, f serveFlags) error {
	if err := f.log.check(); err != nil {
		return err
	}
	loopback, err := config.Loopback(f.listen)
	switch {
	case err != nil:
		return withStatus(exitUsage, err)
	case f.noToken && f.tokenFile != "":
		return usageError("--no-token and --token-file cannot be combined")
	case f.noToken && a.Config.Auth != nil:
		return usageError("--no-token and the setting auth cannot be combined: with auth, users need access tokens")
	case !loopback && f.noToken:
		return usageError("--no-token is for loopback only; %s is reachable from other machines", f.listen)
	case !loopback && f.tokenFile == "" && a.Config.Auth == nil:
		return usageError("%s is reachable from other machines: give a token with --token-file, let users sign in (auth), or listen on 127.0.0.1", f.listen)
	}
	token, from, err := p.hostToken(a, f)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	auth, err := p.userSignIn(a)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	listener, err := net.Listen("tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return withStatus(exitFailed, fmt.Errorf("%s is in use by another program; choose another with --listen 127.0.0.1:PORT (port 0 takes a free one)", f.listen))
	}
	if err != nil {
		return withStatus(exitFailed, err)
	}
	log := p.startCallLog(a, f.log)
	defer log.close()
	api := p.newAPI(a)
	var pages http.Handler
	if auth != nil {
		pages = a.SignInPages()
	}
	handler := a.Gateway.HTTP(gateway.HTTPConfig{
		Token: token, Auth: auth, Hosts: append(gateway.HostNames(f.listen, listener.Addr(), f.hosts), publicHost(auth)...), ID: a.ID(), Metrics: a.Metrics, MetricsType: prometheus.ContentType,
		API: api, Callback: api.Callback(), SignIn: pages,
	})
	a.SetURL("http://" + callableAddress(listener.Addr()))
	server := gateway.NewHTTPServer(handler)
	p.openControlSocket(a, "http://"+callableAddress(listener.Addr())+"/mcp")
	a.StartBackground()
	defer p.followConfig(ctx, a)()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	if err := p.announce(listener.Addr(), token, from, auth); err != nil {
		return err
	}
	select {
	case err = <-done:
		log.stop(fmt.Sprint(err))
	case <-ctx.Done():
		log.stop(strings.TrimSuffix(fmt.Sprint(context.Cause(ctx)), " signal received")) // name of the signal
		err = gateway.Shutdown(server, handler)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return withStatus(exitFailed, err)
	}
	return nil
}

// hostToken returns the host's own token, and where it is from; "" if no token is required.
// The first host creates one in the state directory. It returns an error if the token
// cannot be read or created, or is too short.
func (p *program) hostToken(a *core.App, f serveFlags) (token, from string, err error) {
	switch {
	case f.noToken:
		return "", "", nil
	case a.Config.Auth != nil:
		return config.OwnToken(f.tokenFile, p.getenv)
	}
	return config.Token(f.tokenFile, a.Config.State, p.getenv)
}

// userSignIn returns the configuration for the sign-in of users, and makes a use it; nil:
// users do not sign in. If the issuer cannot be used, standard error tells the reason, and when
// users can sign in again. It returns an error for an invalid setting.
func (p *program) userSignIn(a *core.App) (*gateway.Auth, error) {
	c := a.Config.Auth
	if c == nil {
		return nil, nil
	}
	reporting := *c
	reporting.Report = func(err error) {
		if err == nil {
			p.logf("users can sign in again: auth.issuer answers")
			return
		}
		p.logf("users cannot sign in: auth.issuer: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	v, err := accesstoken.New(reporting)
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	a.SetIssuer(v)
	return &gateway.Auth{Verify: v.Verify, Issuer: c.Issuer, URL: c.URL, Scopes: c.Scopes}, nil
}

// publicHost returns the values of the header Host for the public address of auth; nil: it has
// none.
func publicHost(auth *gateway.Auth) []string {
	if auth == nil {
		return nil
	}
	u, err := url.Parse(auth.URL)
	if err != nil {
		return nil
	}
	host := strings.ToLower(u.Host)
	if u.Port() != "" {
		return []string{host}
	}
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return []string{host + ":" + port, host}
}

// announce prints the URL and how a client authenticates: by token ("": not needed) or,
// with auth, by sign-in. from says where the token comes from.
func (p *program) announce(addr net.Addr, token, from string, auth *gateway.Auth) error {
	url := "http://" + callableAddress(addr)
	if auth != nil {
		if err := p.printf("url:     %s/mcp\nsign-in: %s\n", strings.TrimRight(auth.URL, "/"), auth.Issuer); err != nil || token == "" {
			return err
		}
		p.logf("the host's own token, for the APIs and /metrics, is from %s", from)
		return nil
	}
	says, key := token, token
	if token == "" {
		says, key = "not required", "none"
	}
	// In one write, so that a reader that stops at the token has all lines.
	err := p.printf("url:   %s/mcp\ntoken: %s\n\n# for clients of OpenAI's and of Anthropic's API\nexport OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=%s\nexport ANTHROPIC_BASE_URL=%s ANTHROPIC_API_KEY=%s\n",
		url, says, url, key, url, key)
	if err != nil || token == "" {
		return err
	}
	p.logf("the token is from %s; stop with Ctrl-C", from)
	return nil
}

// callableAddress returns the address at which clients reach a listener on addr: with the host's
// name if it listens on all addresses.
func callableAddress(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}
