package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A user of serve signs in to a server by a link to this host:
//
//  1. /sign-in/ID sends the browser to the issuer of the users.
//  2. /sign-in/user receives the answer. The user at the browser must be the one whose
//     call needs the sign-in: otherwise a link that was sent to somebody else would give
//     the sender that person's access. It sends the browser to the server's
//     authorization server.
//  3. /sign-in/callback receives the answer and stores the tokens for the user.
//
// A cookie binds the steps to one browser, and each state is accepted once. No address
// to redirect to comes from a request.
const (
	signInPath   = "/sign-in/"
	signInCookie = "toolroom_sign_in_"
	linkLife     = 10 * time.Minute
	maxLinks     = 1000
)

// SetIssuer sets the issuer of the users of serve. It must be called before the first
// use.
func (a *App) SetIssuer(v *accesstoken.Verifier) { a.issuer.Store(v) }

// signInLinks holds the sign-ins of users that wait for a browser.
type signInLinks struct {
	mu      sync.Mutex
	byID    map[string]*userSignIn
	byState map[string]*browserStep
	over    map[string]time.Time // expiry of links that have ended, by id; a copy in the store can be read meanwhile
}

// userSignIn is a running sign-in of a user to a server, which ends when the user has
// signed in, at an error, or when it expires.
type userSignIn struct {
	id      string
	cfg     oauth.Config // with the user's subject
	expires time.Time
	done    chan struct{}
	err     error       // why the sign-in failed; nil: the user signed in. Valid after done is closed
	ended   bool        // guarded by signInLinks.mu
	stored  atomic.Bool // see storeLink
}

// browserStep waits for an answer at a redirect address. login or attempt is set.
type browserStep struct {
	signIn  *userSignIn
	cookie  [sha256.Size]byte
	login   *accesstoken.BrowserLogin
	attempt *oauth.Attempt
}

// open returns the sign-in of a user to a server, a new one if none waits. It returns
// LIMIT_REACHED if maxLinks wait.
func (s *signInLinks) open(cfg oauth.Config) (*userSignIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.endExpired(now)
	for _, one := range s.byID {
		if one.cfg.File() == cfg.File() {
			return one, nil
		}
	}
	if len(s.byID) >= maxLinks {
		return nil, toolerr.New(toolerr.LimitReached, "too many users are signing in; try again later")
	}
	if s.byID == nil {
		s.byID, s.byState = map[string]*userSignIn{}, map[string]*browserStep{}
	}
	one := &userSignIn{id: rand.Text(), cfg: cfg, expires: now.Add(linkLife), done: make(chan struct{})}
	s.byID[one.id] = one
	return one, nil
}

// endExpired ends the sign-ins that have expired at the time now. The caller holds s.mu.
func (s *signInLinks) endExpired(now time.Time) {
	for _, one := range s.byID {
		if now.After(one.expires) {
			s.endLocked(one, errors.New("the sign-in was not completed in time"))
		}
	}
}

// restore adds a sign-in of an earlier process of the host with its id and expiry, or makes
// the id one of the sign-in of the same user to the same server that waits. It returns the
// sign-in; nil if maxLinks wait, or the sign-in has ended meanwhile.
func (s *signInLinks) restore(id string, cfg oauth.Config, expires time.Time) *userSignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, over := s.over[id]; over {
		return nil
	}
	s.endExpired(time.Now()) // among them can be one of the same user, whose link was issued earlier
	if len(s.byID) >= maxLinks {
		return nil
	}
	if s.byID == nil {
		s.byID, s.byState = map[string]*userSignIn{}, map[string]*browserStep{}
	}
	restored := &userSignIn{id: id, cfg: cfg, expires: expires, done: make(chan struct{})}
	for _, one := range s.byID {
		if one.cfg.File() == cfg.File() {
			restored = one
		}
	}
	s.byID[id] = restored
	return restored
}

// get returns the sign-in with an id; nil if none waits or it has expired.
func (s *signInLinks) get(id string) *userSignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[id]
	if one == nil || time.Now().After(one.expires) {
		return nil
	}
	return one
}

// idsOf returns the ids of the links of a sign-in.
func (s *signInLinks) idsOf(of *userSignIn) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.byID {
		if one == of {
			ids = append(ids, id)
		}
	}
	return ids
}

// end ends a sign-in and removes its links. err is nil if the user signed in.
func (s *signInLinks) end(ended *userSignIn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(ended, err)
}

// endLocked is end for callers that hold s.mu.
func (s *signInLinks) endLocked(ended *userSignIn, err error) {
	if ended.ended {
		return
	}
	ended.ended, ended.err = true, err
	maps.DeleteFunc(s.over, func(_ string, expires time.Time) bool { return time.Now().After(expires) })
	for id, one := range s.byID {
		if one == ended {
			delete(s.byID, id)
			if s.over == nil {
				s.over = map[string]time.Time{}
			}
			s.over[id] = one.expires
		}
	}
	maps.DeleteFunc(s.byState, func(_ string, step *browserStep) bool { return step.signIn == ended })
	close(ended.done)
}

// registerStep makes step the one that waits for the browser's answer with this state. It
// replaces an earlier step of the same sign-in: only the browser that opened the link last
// can answer.
func (s *signInLinks) registerStep(state string, step *browserStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, old := range s.byState {
		if old.signIn == step.signIn {
			delete(s.byState, other)
		}
	}
	if !step.signIn.ended {
		s.byState[state] = step
	}
}

// takeStep removes and returns the step that waits for the answer in the request r. isUser
// is true for answers of the users' issuer. It returns nil if no such step waits, or the
// request does not come from the browser that opened the link.
func (s *signInLinks) takeStep(r *http.Request, isUser bool) *browserStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := r.URL.Query()["state"]
	if len(states) != 1 {
		return nil
	}
	step := s.byState[states[0]]
	if step == nil || (step.login != nil) != isUser || time.Now().After(step.signIn.expires) {
		return nil
	}
	cookie, err := r.Cookie(signInCookie + step.signIn.id)
	if err != nil {
		return nil
	}
	given := sha256.Sum256([]byte(cookie.Value))
	if subtle.ConstantTimeCompare(given[:], step.cookie[:]) != 1 {
		return nil
	}
	delete(s.byState, states[0])
	return step
}

// signInURL returns the public address of a path below signInPath.
func (a *App) signInURL(rest string) string {
	return strings.TrimRight(a.Config.Auth.URL, "/") + signInPath + rest
}

// signInUser does the same as signIn for a server to which each user signs in. again is
// true after the sign-in. If the caller's client cannot open links, or nobody signs in in
// time, err contains the link.
func (a *App) signInUser(ctx context.Context, req *call.Request, sc config.Server, refusal error) (again bool, err error) {
	cfg, ok := sc.SignInOf(req.Caller.Subject, a.tokenStorage(), a.version)
	if !ok || a.issuer.Load() == nil {
		return false, refusal
	}
	one, err := a.links.open(cfg)
	if err != nil {
		return false, err
	}
	a.storeLink(ctx, one)
	link := a.signInURL(one.id)
	needed := toolerr.New(toolerr.AuthFailed, "server %s needs the sign-in of %s: ask the user to open %s in a browser and to sign in, then call %s again",
		cfg.Server, req.Caller.User, link, req.Tool.Name)
	if _, links := req.Caller.Elicitation(); req.Ask == nil || !links {
		return false, needed
	}
	defer call.PauseClocks(ctx)() // a person gets more time than a server
	defer reportWaiting(req, cfg.Server)()
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	id := rand.Text()
	if !acceptedLink(req.Ask(call.WithHostQuestion(ctx), "elicitation/create", signInQuestion(req, cfg.Server, oauth.MissingScopes(refusal), id, link))) {
		return false, needed
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return false, needed
	}
	if one.err != nil {
		return false, toolerr.New(toolerr.AuthFailed, "the sign-in of %s to server %s failed: %w", req.Caller.User, cfg.Server, one.err)
	}
	if !req.Caller.Modern {
		a.Gateway.NotifyElicitationComplete("", append(jsonrpc.AppendString([]byte(`{"elicitationId":`), id), '}'))
	}
	return true, nil
}

// SignInPages returns the handler of the pages behind the links, which need no token.
func (a *App) SignInPages() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if r.Method != http.MethodGet {
			h.Set("Allow", "GET")
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		switch id := strings.TrimPrefix(r.URL.Path, signInPath); id {
		case "user":
			a.serveUserAnswer(w, r)
		case "callback":
			a.serveServerAnswer(w, r)
		default:
			a.serveLink(w, r, id)
		}
	})
}

// linkIsOver is the text of the page for a link that is not valid.
const linkIsOver = "This link is not valid any more, or it was opened in another browser. Call the tool again to get a new link."

// serveLink sets the cookie for the sign-in with an id, and sends the browser to the
// issuer of the users.
func (a *App) serveLink(w http.ResponseWriter, r *http.Request, id string) {
	one, issuer := a.findLink(r.Context(), id), a.issuer.Load()
	if one == nil || issuer == nil {
		oauth.WritePage(w, http.StatusNotFound, "Link not valid", linkIsOver)
		return
	}
	login, address, err := issuer.BeginLogin(r.Context(), a.signInURL("user"))
	if err != nil {
		signInFailed(w, http.StatusBadGateway, fmt.Sprintf("The sign-in cannot begin: %v.", err))
		return
	}
	value := rand.Text()
	http.SetCookie(w, &http.Cookie{
		Name: signInCookie + one.id, Value: value, Path: signInPath, MaxAge: int(linkLife.Seconds()),
		HttpOnly: true, Secure: strings.HasPrefix(a.Config.Auth.URL, "https://"), SameSite: http.SameSiteLaxMode,
	})
	a.links.registerStep(login.State(), &browserStep{signIn: one, cookie: sha256.Sum256([]byte(value)), login: login})
	redirectTo(w, r, address)
}

// serveUserAnswer receives the answer of the users' issuer, and sends the browser to the
// server's authorization server.
func (a *App) serveUserAnswer(w http.ResponseWriter, r *http.Request) {
	step := a.links.takeStep(r, true)
	if step == nil {
		oauth.WritePage(w, http.StatusBadRequest, "Link not valid", linkIsOver)
		return
	}
	cfg := step.signIn.cfg
	subject, err := step.login.Finish(r.Context(), r.URL.Query())
	if err != nil {
		if errors.Is(err, accesstoken.ErrLoginRefused) { // in the browser that opened the link, which is secret
			a.endLink(r.Context(), step.signIn, err)
		}
		signInFailed(w, http.StatusBadRequest, fmt.Sprintf("The host could not find out who you are: %v.", err))
		return
	}
	if subject != cfg.Subject {
		signInFailed(w, http.StatusForbidden, "This link is for another user. Nothing was changed.")
		return
	}
	attempt, address, err := oauth.Begin(r.Context(), cfg, a.signInURL("callback"))
	if err != nil {
		a.endLink(r.Context(), step.signIn, err)
		signInFailed(w, http.StatusBadGateway, fmt.Sprintf("The sign-in to server %s cannot begin: %v.", cfg.Server, err))
		return
	}
	a.links.registerStep(attempt.State(), &browserStep{signIn: step.signIn, cookie: step.cookie, attempt: attempt})
	redirectTo(w, r, address)
}

// serveServerAnswer receives the answer of the server's authorization server, stores the
// tokens and ends the sign-in.
func (a *App) serveServerAnswer(w http.ResponseWriter, r *http.Request) {
	step := a.links.takeStep(r, false)
	if step == nil {
		oauth.WritePage(w, http.StatusBadRequest, "Link not valid", linkIsOver)
		return
	}
	account, err := step.attempt.Finish(r.Context(), r.URL.Query())
	if err == nil {
		a.noticeStorage(step.signIn.cfg, account)
	}
	a.endLink(r.Context(), step.signIn, err)
	if err != nil {
		signInFailed(w, http.StatusBadRequest, fmt.Sprintf("The sign-in to server %s failed: %v.", step.signIn.cfg.Server, err))
		return
	}
	oauth.WritePage(w, http.StatusOK, "Signed in", fmt.Sprintf("Signed in to server %s. You can close this page.", step.signIn.cfg.Server))
}

// signInFailed answers a browser with the reason why a sign-in failed.
func signInFailed(w http.ResponseWriter, status int, reason string) {
	oauth.WritePage(w, status, "Sign-in failed", reason)
}

// redirectTo sends the browser to an authorization address. It refuses schemes except
// https and http.
func redirectTo(w http.ResponseWriter, r *http.Request, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		signInFailed(w, http.StatusBadGateway, "The address of the authorization server is malformed.")
		return
	}
	http.Redirect(w, r, address, http.StatusSeeOther)
}
