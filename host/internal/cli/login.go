package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/keyring"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// loginFlags holds the flags of login.
type loginFlags struct {
	noBrowser, paste, device bool
	wait                     time.Duration
	store                    string // of the tokens; "": as the configuration says
}

func (p *program) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to a server that uses OAuth",
		Long: `login signs in to the configured server NAME: it opens the page of the server's
authorization server in the browser, waits for the answer on a port of this machine and
stores the tokens in the state directory, encrypted with a key in the keyring of the
system; without a keyring, in a file that only you can read. All hosts with that state
directory, including running ones, use the tokens immediately, and refresh them.

Without a browser on this machine, use --device, or --paste: open the printed link
anywhere, sign in, and paste the URL that the browser shows at the end.`,
		Example: "  mcp-host login github\n  mcp-host login github --paste\n  mcp-host login github --device",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.paste && f.device {
				return usageError("give only one of --paste and --device")
			}
			if f.store != "" && f.store != "auto" && f.store != oauth.InKeyring && f.store != oauth.InFile {
				return usageError("--token-store %q is not supported; use auto, keyring or file", f.store)
			}
			return p.runLogin(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.noBrowser, "no-browser", false, "print the link instead of opening the browser")
	cmd.Flags().BoolVar(&f.paste, "paste", false, "print the link and read the address that the browser was redirected to")
	cmd.Flags().BoolVar(&f.device, "device", false, "print a code to enter on another device (RFC 8628)")
	cmd.Flags().StringVar(&f.store, "token-store", "", "store the tokens in `PLACE`: keyring, file or auto (default: token_store of the configuration)")
	cmd.Flags().DurationVar(&f.wait, "timeout", 10*time.Minute, "wait at most `DURATION` for the sign-in")
	return cmd
}

func (p *program) logoutCommand() *cobra.Command {
	var users bool
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Sign out of a server: revoke its tokens and delete them",
		Long: `logout revokes the tokens of the server NAME at its authorization server and deletes
them. They are deleted even if they cannot be revoked; then the exit status is 1.`,
		Example: "  mcp-host logout github",
		Args:    argumentCount(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return p.runLogout(cmd.Context(), args[0], users) },
	}
	cmd.Flags().BoolVar(&users, "users", false, "sign out the users of serve, who sign in with credentials: caller, instead of the host")
	return cmd
}

// tokenStorage returns where the tokens of sign-ins are stored. The caller calls close
// after its use, which closes the store of the cluster if they are there. It returns the
// error of opening that store.
func tokenStorage(cfg config.Config) (storage oauth.Storage, close func(), err error) {
	storage = cfg.TokenStorage()
	if storage.Kind != oauth.InCluster {
		return storage, func() {}, nil
	}
	s, err := backend.Open(cfg.Store)
	if err != nil {
		return storage, func() {}, err
	}
	storage.Shared = s.Keys
	return storage, func() { s.Close() }, nil //nolint:errcheck // everything is written
}

// signInConfig returns the configuration of the sign-in to a server. The caller calls close after
// its use. It returns an error with exit status 2 for an unknown server, or one without a
// sign-in.
func (p *program) signInConfig(name string) (c oauth.Config, close func(), err error) {
	dir, err := bundledtools.HostDir()
	if err != nil {
		return c, nil, withStatus(exitFailed, err)
	}
	cfg, err := p.loadWithoutBroken(dir)
	if err != nil {
		return c, nil, withStatus(exitUsage, err)
	}
	for _, spec := range cfg.Remote {
		if spec.Name != name {
			continue
		}
		storage, close, err := tokenStorage(cfg)
		if err != nil {
			return c, nil, withStatus(exitFailed, err)
		}
		c, ok := config.SignIn(spec, storage, buildinfo.Version())
		switch {
		case cfg.State == "":
			return c, nil, withStatus(exitUsage, fmt.Errorf("no directory for tokens: set --state, MCP_STATE_DIR or HOME"))
		case !ok:
			return c, nil, usageError("server %s has credentials in its configuration, or oauth: false; remove them to sign in", name)
		}
		c.Keyring = keyring.New(keyring.LongTimeout) // the user is here to enter its password
		return c, close, nil
	}
	if slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Name == name }) {
		return c, nil, usageError("server %s is a program; only servers with a url are signed in to", name)
	}
	return c, nil, usageError("no server %q; mcp-host servers lists them", name)
}

// runLogin signs in to the server name, waits for the user, says where the tokens are
// stored, and lets running hosts connect again. It returns an error if nobody signs in
// within f.wait.
func (p *program) runLogin(ctx context.Context, name string, f loginFlags) error {
	c, close, err := p.signInConfig(name)
	if err != nil {
		return err
	}
	defer close()
	switch {
	case f.store == "":
	case c.Kind == oauth.InCluster:
		return usageError("--token-store cannot be used with token_store: cluster of the configuration")
	case f.store == "auto":
		c.Kind = ""
	default:
		c.Kind = f.store
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if f.paste { // they would end the program before it restores the mode of the terminal
		ends = append(ends, syscall.SIGQUIT)
		if !signal.Ignored(syscall.SIGHUP) { // ignored by nohup
			ends = append(ends, syscall.SIGHUP)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	waiting, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	before, _, _ := c.Status() //nolint:errcheck // Login returns it
	account, err := oauth.Login(waiting, c, p.signInPrompt(c, f))
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the sign-in was interrupted; nothing was stored")
		}
		return withStatus(exitFailed, fmt.Errorf("login %s: %w", name, err))
	}
	if err := p.printf("%s: %s\n", printable(name), printable(account.String())); err != nil {
		return err
	}
	switch {
	case before.Issuer != "" && before.Keyring == account.Keyring:
	case c.Kind == oauth.InCluster:
		p.logf("the tokens are in the store of the cluster; all its hosts use them")
	case account.Keyring:
		p.logf("the tokens are in %s, encrypted with a key in the keyring of the system", c.File())
	case account.NoKeyring != nil:
		p.logf("the tokens are in %s, readable by you alone; the keyring of the system cannot be used: %v", c.File(), account.NoKeyring)
	default:
		p.logf("the tokens are in %s, readable by you alone", c.File())
	}
	p.reconnectHosts(ctx, name, true)
	return nil
}

// signInPrompt returns the interaction with the user for a sign-in, on this terminal.
func (p *program) signInPrompt(c oauth.Config, f loginFlags) oauth.Prompt {
	say := func(format string, args ...any) error {
		_, err := fmt.Fprintf(p.err, format+"\n", args...)
		return err
	}
	prompt := oauth.Prompt{Open: func(address string) error {
		switch {
		case f.paste:
			return say("Open this link in any browser and sign in. The browser then ends at an address that\nbegins with %s and does not load: paste that address here.\n\n  %s\n", redirectHost(address), address)
		case f.noBrowser:
			return say("Open this link in the browser of this machine to sign in to %s:\n\n  %s\n\nWaiting for the sign-in …", printable(c.Server), address)
		}
		if err := oauth.OpenBrowser(p.getenv("BROWSER"), address); err != nil {
			p.logf("%v", err)
		}
		return say("Sign in to %s in the browser. If it did not open, open this link:\n\n  %s\n\nWaiting for the sign-in …", printable(c.Server), address)
	}}
	if f.paste {
		prompt.Paste = p.readPasted
	}
	if f.device {
		prompt.Device = func(address, code string) error {
			return say("Open this link on any device and enter the code %s\n\n  %s\n\nWaiting for the sign-in …", printable(code), address)
		}
	}
	return prompt
}

// readPasted reads the pasted address from the input. In its line mode, a terminal cuts lines: after
// 4095 bytes on Linux, after 1023 on macOS. The mode of the terminal is restored at the end, also
// if ctx ends.
func (p *program) readPasted(ctx context.Context) (string, error) {
	in, ok := p.in.(*os.File)
	if !ok || !lineedit.IsTerminal(in) {
		return oauth.ReadPasted(ctx, p.in, nil)
	}
	restore, ok := lineedit.TerminalFile{In: in}.DisableLines()
	defer restore()
	if !ok {
		return oauth.ReadPasted(ctx, in, nil)
	}
	return oauth.ReadPasted(ctx, in, p.err)
}

// redirectHost returns the scheme and the host of the redirect address in an authorization address.
func redirectHost(address string) string {
	if u, err := url.Parse(address); err == nil {
		if to, err := url.Parse(u.Query().Get("redirect_uri")); err == nil && to.Host != "" {
			host := to.Hostname()
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			return "http://" + host
		}
	}
	return "http://127.0.0.1"
}

// runLogout signs out of the server name, or with users signs out all users of serve. If tokens could
// not be deleted or not be revoked, it returns an exit error that says which.
func (p *program) runLogout(ctx context.Context, name string, users bool) error {
	c, close, err := p.signInConfig(name)
	if err != nil {
		return err
	}
	defer close()
	if users {
		n, err := oauth.LogoutUsers(ctx, c)
		if err != nil {
			return withStatus(exitFailed, fmt.Errorf("logout %s: the tokens of %d users are deleted, but %w", name, n, err))
		}
		return p.printf("%s: users signed out: %d\n", printable(name), n)
	}
	found, err := oauth.Logout(ctx, c)
	if notRevoked := (*oauth.NotRevokedError)(nil); errors.As(err, &notRevoked) {
		return withStatus(exitFailed, fmt.Errorf("logout %s: the tokens are deleted, but %w", name, err))
	} else if err != nil {
		return withStatus(exitFailed, fmt.Errorf("logout %s: the tokens are not deleted: %w", name, err))
	}
	text := "signed out"
	if !found {
		text = "there was no sign-in"
	}
	if err := p.printf("%s: %s\n", printable(name), text); err != nil {
		return err
	}
	p.reconnectHosts(ctx, name, false)
	return nil
}

// reconnectHosts makes the running hosts connect to the server again after a sign-in, so that they
// list its tools at once. Without signedIn it does nothing. Hosts that do not answer use the new
// tokens at their next call.
func (p *program) reconnectHosts(ctx context.Context, name string, signedIn bool) {
	hosts, err := p.liveHosts(ctx, 0)
	if err != nil || !signedIn {
		return
	}
	for _, h := range hosts {
		var now upstream.Status
		if err := ask(ctx, h.Host, reconnectTimeout, core.MethodReconnect, map[string]string{"server": name}, &now); err == nil {
			p.logf("%s: server %s is %s", h.String(), name, now.State)
		} else if !strings.Contains(err.Error(), "no server") {
			p.logf("%s: %v", h.String(), err)
		}
	}
}
