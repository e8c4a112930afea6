package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Authorizer supplies the access token of a server that requires OAuth. It is safe for
// concurrent use. Package oauth implements it.
type Authorizer interface {
	// Token returns the current token, "" if none exists.
	Token(ctx context.Context) (string, error)
	// Refused handles an answer with status 401 or 403 and its WWW-Authenticate
	// headers to a request with that token. It reports whether the request is to be
	// sent again. The error says what the user can do.
	Refused(ctx context.Context, token string, status int, headers []string) (again bool, err error)
	// NeedsSignIn reports whether a sign-in resolves an error of Token, Refused or Sign.
	NeedsSignIn(err error) bool
	// Sign adds a token, which is not empty, to a request.
	Sign(req *http.Request, token string) error
	// Received is called with each answer. It reports whether the request can be sent
	// again at once with a new signature.
	Received(res *http.Response) (again bool)
	// Changed reports whether there is a token that has not been sent yet.
	Changed() bool
	// SignIn describes the sign-in for people: who, until when, with which scopes. It
	// is "" if nobody signed in and no server asked for it.
	SignIn() string
	// Secrets returns the tokens, which messages must not contain.
	Secrets() []string
	// Close tells that no further request follows. A renewal of the token that was begun may go on.
	Close()
}

// authTransport adds the access token to requests to one origin. It sends a request again
// at most once after a refusal if a new token exists, and once for a new nonce of the
// server.
type authTransport struct {
	next http.RoundTripper
	auth Authorizer
	base *url.URL
}

// withAuthorization returns next with the tokens of Config.Auth added to requests to base;
// without Auth, next itself.
func (c Config) withAuthorization(base *url.URL, next http.RoundTripper) http.RoundTripper {
	if c.Auth == nil {
		return next
	}
	return &authTransport{next, c.Auth, base}
}

// authError is AUTH_FAILED with an error of the Authorizer: for all requests to the server if
// server is true, else for one call.
type authError struct {
	error
	server bool
	signIn bool // a sign-in resolves it; otherwise, for example, the provider does not answer
}

// Unwrap returns the wrapped error.
func (e *authError) Unwrap() error { return e.error }

// needsSignIn reports whether an error says that all requests to the server wait for a
// sign-in.
func needsSignIn(err error) bool {
	var e *authError
	return errors.As(err, &e) && e.server && e.signIn
}

// lacksToken reports whether an error says that no request to the server can be sent now, and that
// no sign-in changes that.
func lacksToken(err error) bool {
	var e *authError
	return errors.As(err, &e) && e.server && !e.signIn
}

// RoundTrip sends a request with the current token; see authTransport for repetitions.
// Requests to other servers get no token. If there is no token, the error is an
// *authError.
func (b *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != b.base.Scheme || req.URL.Host != b.base.Host { // only this server gets the token
		return b.next.RoundTrip(req)
	}
	repeats := req.Body == nil || req.GetBody != nil
	for refused, answered := false, false; ; {
		token, err := b.auth.Token(req.Context())
		if err != nil {
			return nil, b.newTokenError(req, err)
		}
		signed, err := b.signedCopy(req, token)
		if err != nil {
			return nil, b.newError(err, true)
		}
		res, err := b.next.RoundTrip(signed)
		if err != nil {
			return nil, err
		}
		if b.auth.Received(res) && !answered && repeats {
			answered = true
			if req, err = copyForRetry(req, res); err != nil {
				return nil, err
			}
			continue
		}
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
			return res, err
		}
		retry, err := b.auth.Refused(req.Context(), token, res.StatusCode, res.Header.Values("WWW-Authenticate"))
		if err != nil {
			drain(res.Body)
			if req.Context().Err() != nil {
				return nil, err
			}
			return nil, b.newError(err, res.StatusCode == http.StatusUnauthorized)
		}
		if !retry || refused || !repeats {
			return res, nil
		}
		refused = true
		if req, err = copyForRetry(req, res); err != nil {
			return nil, err
		}
	}
}

// copyForRetry returns a request that can be sent again after the answer res, whose body
// it drains.
func copyForRetry(req *http.Request, res *http.Response) (*http.Request, error) {
	drain(res.Body)
	if req.Body == nil {
		return req, nil
	}
	req = req.Clone(req.Context())
	var err error
	req.Body, err = req.GetBody()
	return req, err
}

// CloseIdleConnections is called by http.Client.
func (b *authTransport) CloseIdleConnections() {
	if closing, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}

// newTokenError returns the error of a request without a token: an *authError for the server, or
// err itself if the request was cancelled.
func (b *authTransport) newTokenError(req *http.Request, err error) error {
	if req.Context().Err() != nil {
		return err
	}
	return b.newError(err, true)
}

// newError returns AUTH_FAILED with the text of err, as an authError.
func (b *authTransport) newError(err error, server bool) error {
	return &authError{toolerr.New(toolerr.AuthFailed, "%w", err), server, b.auth.NeedsSignIn(err)}
}

// signedCopy returns a copy of the request with a token. A RoundTripper must not change
// its request.
func (b *authTransport) signedCopy(req *http.Request, token string) (*http.Request, error) {
	if token == "" {
		return req, nil
	}
	req = req.Clone(req.Context())
	return req, b.auth.Sign(req, token)
}

// credentialAdvice returns the part of an error message that says how to configure
// credentials for the server.
func (r *remote) credentialAdvice() string {
	text := "check api_key, auth_token_env or headers of server " + r.cfg.Name
	if r.cfg.Auth != nil {
		text += fmt.Sprintf(", or run mcp-host login %s if it uses OAuth", r.cfg.Name)
	}
	return text
}
