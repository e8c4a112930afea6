package core

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
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
	userCookie   = "toolroom_user"
)

// SetIssuer sets the issuer of the users of serve. It must be called before the first
// use.
func (a *App) SetIssuer(v *accesstoken.Verifier) { a.issuer.Store(v) }

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
	before := a.lastSignInEnd(ctx, cfg)
	one, err := a.openLink(ctx, cfg)
	if err != nil {
		return false, err
	}
	link := a.signInURL(one.id)
	needed := toolerr.New(toolerr.AuthFailed, "server %s needs the sign-in of %s: ask the user to open %s in a browser and to sign in, then call %s again",
		cfg.Server, req.Caller.User, link, req.Tool.Name)
	if _, links := req.Caller.Elicitation(); req.Ask == nil || !links {
		return false, needed
	}
	defer call.PauseClocks(ctx)() // a person gets more time than a server
	defer reportWaiting(req, cfg.Server)()
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	id := rand.Text()
	if !acceptedLink(req.Ask(call.WithHostQuestion(ctx), "elicitation/create", signInQuestion(req, cfg.Server, oauth.MissingScopes(refusal), id, link))) {
		return false, needed
	}
	switch ended, err := a.awaitLink(ctx, one, before); {
	case !ended:
		return false, needed
	case err != nil:
		return false, toolerr.New(toolerr.AuthFailed, "the sign-in of %s to server %s failed: %w", req.Caller.User, cfg.Server, err)
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

// linkStillValidText is added to the text of a page if the link can be used again.
const linkStillValidText = "The link is still valid: open it again to sign in."

// linkNotValidText is the text of the page for a link that is not valid.
const linkNotValidText = "This link is not valid any more, or it was opened in another browser. Call the tool again to get a new link."

// serveLink sets the cookie for the sign-in with an id, and sends the browser to the
// issuer of the users.
func (a *App) serveLink(w http.ResponseWriter, r *http.Request, id string) {
	one, issuer := a.findLink(r.Context(), id), a.issuer.Load()
	if one == nil || issuer == nil {
		oauth.WritePage(w, http.StatusNotFound, "Link not valid", linkNotValidText)
		return
	}
	login, address, err := issuer.BeginLogin(r.Context(), a.signInURL("user"))
	if err != nil {
		signInFailed(w, http.StatusBadGateway, fmt.Sprintf("The sign-in cannot begin: %v.", err))
		return
	}
	value := a.links.cookieFor(r, one)
	a.setCookie(w, signInCookie+one.id, value, linkLifetime)
	a.registerStep(r.Context(), login.State(), &browserStep{signIn: one, link: one.id, cookie: value, login: login})
	redirectTo(w, r, address)
}

// serveUserAnswer receives the answer of the users' issuer, and sends the browser to the
// server's authorization server.
func (a *App) serveUserAnswer(w http.ResponseWriter, r *http.Request) {
	step := a.takeStep(r, true)
	if step == nil {
		oauth.WritePage(w, http.StatusBadRequest, "Link not valid", linkNotValidText)
		return
	}
	cfg := step.signIn.cfg
	subject, err := step.login.Finish(r.Context(), r.URL.Query())
	switch {
	case errors.Is(err, accesstoken.ErrLoginRefused) && a.isBrowserOf(r, cfg.Subject):
		a.endLink(r.Context(), step.signIn, err)
		signInFailed(w, http.StatusBadRequest, fmt.Sprintf("You refused to sign in, so the call of server %s has ended.", cfg.Server))
		return
	case errors.Is(err, accesstoken.ErrLoginRefused):
		signInFailed(w, http.StatusBadRequest, "The sign-in was refused. "+linkStillValidText+" To end the call that waits for it, cancel the call in your client.")
		return
	case err != nil:
		signInFailed(w, http.StatusBadRequest, fmt.Sprintf("The host could not find out who you are: %v. %s", err, linkStillValidText))
		return
	case subject != cfg.Subject:
		signInFailed(w, http.StatusForbidden, "This link is for another user. Nothing was changed.")
		return
	}
	a.setCookie(w, userCookie, a.browserMark(subject), 0)
	attempt, address, err := oauth.Begin(r.Context(), cfg, a.signInURL("callback"))
	if err != nil {
		a.endLink(r.Context(), step.signIn, err)
		signInFailed(w, http.StatusBadGateway, fmt.Sprintf("The sign-in to server %s cannot begin: %v.", cfg.Server, err))
		return
	}
	a.registerStep(r.Context(), attempt.State(), &browserStep{signIn: step.signIn, link: step.link, cookie: step.cookie, attempt: attempt})
	redirectTo(w, r, address)
}

// serveServerAnswer receives the answer of the server's authorization server, stores the
// tokens and ends the sign-in.
func (a *App) serveServerAnswer(w http.ResponseWriter, r *http.Request) {
	step := a.takeStep(r, false)
	if step == nil {
		oauth.WritePage(w, http.StatusBadRequest, "Link not valid", linkNotValidText)
		return
	}
	account, err := step.attempt.Finish(r.Context(), r.URL.Query())
	if err != nil && isTemporary(r.URL.Query().Get("error")) {
		signInFailed(w, http.StatusBadRequest, fmt.Sprintf("The sign-in to server %s failed: %v. %s", step.signIn.cfg.Server, err, linkStillValidText))
		return
	}
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

// isTemporary reports whether the error of an authorization response can be over when the user tries again:
// errors of RFC 6749 (section 4.1.2.1), and of OpenID Connect for a user who has to sign in at the provider first.
func isTemporary(code string) bool {
	switch code {
	case "temporarily_unavailable", "server_error", "login_required", "interaction_required", "account_selection_required":
		return true
	}
	return false
}

// setCookie sets a cookie for the pages behind links; life 0: until the browser is closed.
func (a *App) setCookie(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: signInPath, MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: strings.HasPrefix(a.Config.Auth.URL, "https://"), SameSite: http.SameSiteLaxMode,
	})
}

// browserMark returns the value of the cookie userCookie. A browser has it after a user with this subject has signed in
// at the users' issuer there, while this process runs.
//
// A person who refuses at the issuer is not identified. It can be somebody else who has the link, and who must not end
// the user's call. So a refusal ends the sign-in only in a browser with the mark. In other browsers it
// ends the step, and the page says that the call can be cancelled in the client.
func (a *App) browserMark(subject string) string {
	mark := hmac.New(sha256.New, a.links.markKey())
	mark.Write([]byte(subject)) //nolint:errcheck // it never fails
	return hex.EncodeToString(mark.Sum(nil))
}

// isBrowserOf reports whether a request comes from a browser with the mark of a user.
func (a *App) isBrowserOf(r *http.Request, subject string) bool {
	cookie, err := r.Cookie(userCookie)
	return err == nil && hmac.Equal([]byte(cookie.Value), []byte(a.browserMark(subject)))
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
