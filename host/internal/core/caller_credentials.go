package core

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// usesCallerCredentials reports whether requests to a server carry the calling user's own
// credentials: the server is configured with credentials: caller or token_exchange, and
// the host with auth. Without auth, the host has a single user.
func (a *App) usesCallerCredentials(sc config.Server) bool {
	return a.Config.Auth != nil && (sc.Spec.Credentials == dialect.CallerCredentials || sc.Spec.TokenExchange.On)
}

// checkCallerCredentials returns an error if a server uses the credentials of the calling
// user and auth.client_id, the host's id at the issuer, is not configured.
func (a *App) checkCallerCredentials(sc config.Server) error {
	if !a.usesCallerCredentials(sc) || a.Config.Auth.ClientID != "" {
		return nil
	}
	field := "credentials: caller"
	if sc.Spec.TokenExchange.On {
		field = "token_exchange"
	}
	return fmt.Errorf("server %s: %s needs auth.client_id, the id of this host at the issuer", sc.Name, field)
}

// authFor returns a function that returns the credentials for a caller's requests to a
// server, with a key that is the same for callers who can share a connection. The function
// returns "" and nil for callers who are not signed in, such as the owner of the host's
// token: they use the host's credentials. authFor returns nil if all callers do.
func (a *App) authFor(sc config.Server) func(call.Caller) (string, upstream.Authorizer, error) {
	if !a.usesCallerCredentials(sc) {
		return nil
	}
	return func(c call.Caller) (string, upstream.Authorizer, error) {
		switch {
		case c.User == "":
			return "", nil, nil
		case c.Subject == "" || c.Token == nil:
			return "", nil, toolerr.New(toolerr.AuthFailed, "server %s needs to know the user, but the access token has no subject (sub)", sc.Name)
		case sc.Spec.TokenExchange.On:
			token := c.Token()
			sum := sha256.Sum256([]byte(token)) // tokens of one user can have different scopes
			return c.Subject + "\x00" + string(sum[:]), &exchanger{app: a, server: sc, token: token, exchanging: make(chan struct{}, 1)}, nil
		}
		cfg, ok := sc.SignInOf(c.Subject, a.tokenStorage(), a.version)
		if !ok {
			return "", nil, toolerr.New(toolerr.AuthFailed, "server %s: there is no directory for the tokens of users: set --state", sc.Name)
		}
		return c.Subject, oauth.NewSource(cfg), nil
	}
}

// exchanger exchanges users' tokens at the issuer for tokens of a server. It
// implements upstream.Authorizer. The tokens are kept in memory only.
type exchanger struct {
	app    *App
	server config.Server
	token  string // of the user

	exchanging chan struct{} // holds a value during an exchange

	mu      sync.Mutex // not held during an exchange
	current accesstoken.ExchangedToken
	used    []string
	failed  time.Time // when the last exchange failed
}

// exchangeBeforeExpiry is the longest time before its expiry at which a token is replaced.
const exchangeBeforeExpiry = time.Minute

// The limits of an exchange while the last token is valid.
const (
	earlyExchangeTimeout = 2 * time.Second
	earlyExchangePause   = 10 * time.Second // after a failure
)

// Token returns the token for the server. It requests one from the issuer, in exchange for
// the user's token, if it has none or the last one expires soon. It returns the error of
// the exchange if it has no valid token, or an error if ctx ends first.
func (e *exchanger) Token(ctx context.Context) (string, error) {
	valid, due := e.known(time.Now())
	if valid != "" && !due {
		return valid, nil
	}
	if valid != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, earlyExchangeTimeout)
		defer cancel()
	}
	token, err := e.exchange(ctx)
	if err != nil && valid != "" {
		return valid, nil
	}
	return token, err
}

// known returns the last token, or "" if it has expired or none was exchanged yet. due means
// that another one should be exchanged.
func (e *exchanger) known(now time.Time) (valid string, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.current
	switch {
	case x.Access == "" || !x.Expires.IsZero() && now.After(x.Expires):
		return "", true
	case x.Expires.IsZero():
		return x.Access.Reveal(), false
	}
	due = now.After(x.Expires.Add(-min(exchangeBeforeExpiry, x.Expires.Sub(x.Issued)/10)))
	return x.Access.Reveal(), due && now.Sub(e.failed) >= earlyExchangePause
}

// exchange requests a token from the issuer, or returns that of another call which has done so
// meanwhile.
func (e *exchanger) exchange(ctx context.Context) (string, error) {
	select {
	case e.exchanging <- struct{}{}:
		defer func() { <-e.exchanging }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if valid, due := e.known(time.Now()); valid != "" && !due {
		return valid, nil
	}
	issuer := e.app.issuer.Load()
	if issuer == nil {
		return "", errors.New("token exchange: users cannot sign in to this host")
	}
	spec := e.server.Spec
	to := accesstoken.Exchange{Audience: spec.TokenExchange.Audience, Resource: spec.TokenExchange.Resource, Scopes: spec.TokenExchange.Scopes}
	if to.Audience == "" && to.Resource == "" {
		to.Resource = spec.URL
	}
	x, err := issuer.Exchange(ctx, e.token, to)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.failed = time.Now()
		return "", fmt.Errorf("no access token for server %s: %w", e.server.Name, err)
	}
	e.current = x
	e.used = append(e.used[max(0, len(e.used)-3):], x.Access.Reveal())
	return x.Access.Reveal(), nil
}

// Refused drops a token that the server refused with status 401. again is then true, and
// the repeated request gets another token. Other statuses change nothing.
func (e *exchanger) Refused(_ context.Context, token string, status int, _ []string) (again bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if status != http.StatusUnauthorized {
		return false, nil
	}
	if e.current.Access.Reveal() == token {
		e.current = accesstoken.ExchangedToken{}
	}
	return true, nil
}

// NeedsSignIn returns false: nobody signs in to the server.
func (e *exchanger) NeedsSignIn(error) bool { return false }

// Sign sets a token as the bearer token of a request. It never fails.
func (e *exchanger) Sign(req *http.Request, token string) error {
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// Received does nothing: the tokens are not bound to keys.
func (e *exchanger) Received(*http.Response) bool { return false }

// Changed returns true: each start can use a new token.
func (e *exchanger) Changed() bool { return true }

// Close does nothing: an exchange that is lost can be repeated.
func (e *exchanger) Close() {}

// SignIn returns "": nobody signs in to the server.
func (e *exchanger) SignIn() string { return "" }

// Secrets returns the user's token and the last four exchanged ones, which messages must
// not contain.
func (e *exchanger) Secrets() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{e.token}, e.used...)
}

// listTimeout limits the time to list a server's tools for a user, and the time until
// another attempt.
const listTimeout = 10 * time.Second

// listForUser lists the tools of servers that cannot be listed without a user's credentials
// and were never listed; it waits at most listTimeout for each. The gateway calls it before
// a user lists or calls tools.
func (a *App) listForUser(ctx context.Context, caller call.Caller) {
	for _, p := range a.snapshot.Load().servers {
		source, ok := p.entry.Source.(*signInSource)
		if !ok || !a.usesCallerCredentials(p.cfg) || source.listed.Load() || !source.listing.CompareAndSwap(false, true) {
			continue
		}
		a.listServerFor(ctx, p, source, caller)
		source.listing.Store(false)
	}
}

// listServerFor lists a server's tools with a caller's credentials and then has the
// catalog list the server again. It does nothing if the caller is not signed in to the
// server, or if the last attempt is less than listTimeout ago.
func (a *App) listServerFor(ctx context.Context, p *serverEntry, source *signInSource, caller call.Caller) {
	if cfg, ok := p.cfg.SignInOf(caller.Subject, a.tokenStorage(), a.version); ok {
		if account, _, err := cfg.Status(); err != nil || !account.SignedIn {
			return // the server would refuse the user
		}
	}
	if !source.attempts.begin(caller.Subject) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	if _, err := p.server.ListFor(ctx, caller); err == nil {
		a.Catalog.Relist(ctx, p.server.Name())
	}
}

// listAttempts remembers for which users a server was listed lately.
type listAttempts struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// begin reports whether another attempt for a user can begin, because the last one is at
// least listTimeout ago. It then records the new attempt.
func (f *listAttempts) begin(subject string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if at, ok := f.last[subject]; ok && now.Sub(at) < listTimeout {
		return false
	}
	if f.last == nil || len(f.last) > 1000 {
		f.last = map[string]time.Time{}
	}
	f.last[subject] = now
	return true
}
