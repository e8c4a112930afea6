package accesstoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
)

// A BrowserLogin finds out which user uses a browser: the browser signs in at the
// issuer (OpenID Connect, authorization code flow with PKCE).
type BrowserLogin struct {
	v                                *Verifier
	redirect, state, nonce, verifier string
}

// BeginLogin returns a sign-in and the address for the browser. The issuer sends the
// browser to redirect, which must be registered for the host's client id. It returns an
// error without auth.client_id, and if the metadata of the issuer cannot be read or
// names no authorization endpoint.
func (v *Verifier) BeginLogin(ctx context.Context, redirect string) (*BrowserLogin, string, error) {
	from, err := v.metadata(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case v.cfg.ClientID == "":
		return nil, "", errors.New("auth.client_id is not configured")
	case from.Authorization == "":
		return nil, "", errors.New("the issuer's metadata has no authorization_endpoint")
	}
	to, err := url.Parse(from.Authorization)
	if err != nil {
		return nil, "", errors.New("the issuer's authorization_endpoint is malformed")
	}
	l := &BrowserLogin{v, redirect, rand.Text(), rand.Text(), rand.Text() + rand.Text()}
	hash := sha256.Sum256([]byte(l.verifier))
	query := to.Query()
	for name, value := range map[string]string{
		"response_type": "code", "scope": "openid", "client_id": v.cfg.ClientID, "redirect_uri": redirect,
		"state": l.state, "nonce": l.nonce, "code_challenge_method": "S256",
		"code_challenge": base64.RawURLEncoding.EncodeToString(hash[:]),
	} {
		query.Set(name, value)
	}
	to.RawQuery = query.Encode()
	return l, to.String(), nil
}

// State returns the state that the redirect must have.
func (l *BrowserLogin) State() string { return l.state }

// suspendedLogin is a BrowserLogin in JSON.
type suspendedLogin struct {
	Redirect string `json:"redirect"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// Suspend returns the sign-in in a form that ResumeLogin of another process accepts. It contains secrets.
func (l *BrowserLogin) Suspend() ([]byte, error) {
	return json.Marshal(suspendedLogin{l.redirect, l.state, l.nonce, l.verifier})
}

// ResumeLogin returns the sign-in that Suspend returned.
func (v *Verifier) ResumeLogin(suspended []byte) (*BrowserLogin, error) {
	var l suspendedLogin
	if err := json.Unmarshal(suspended, &l); err != nil {
		return nil, err
	}
	return &BrowserLogin{v, l.Redirect, l.State, l.Nonce, l.Verifier}, nil
}

// ErrLoginRefused means that the user or the issuer refused a BrowserLogin (access_denied).
var ErrLoginRefused = errors.New("the sign-in at the issuer was refused (access_denied)")

// Finish checks the parameters of the redirect and returns the subject of the user at
// the browser, in the form of User.Subject. It returns ErrLoginRefused if the
// sign-in was refused, and another error if it failed for another reason, or the redirect or the ID token does
// not belong to this sign-in.
func (l *BrowserLogin) Finish(ctx context.Context, answer url.Values) (subject string, err error) {
	from, err := l.v.metadata(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(answer[name]) > 1 {
			return "", fmt.Errorf("the answer of the issuer has %s twice", name)
		}
	}
	iss := answer.Get("iss")
	switch {
	case answer.Get("state") != l.state:
		return "", errors.New("the answer does not have the state of the request")
	case from.SendsIssuer && iss == "", iss != "" && iss != l.v.cfg.Issuer:
		return "", errors.New("the answer is not from the issuer")
	case answer.Get("error") == "access_denied":
		return "", ErrLoginRefused
	case answer.Get("error") != "":
		return "", fmt.Errorf("the issuer answered with the error %.60q", answer.Get("error"))
	case answer.Get("code") == "":
		return "", errors.New("the answer of the issuer has no code")
	}
	var got struct {
		ID string `json:"id_token"`
	}
	if err := l.v.postToken(ctx, url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {l.redirect}, "code_verifier": {l.verifier},
	}, &got); err != nil {
		return "", err
	}
	token, err := from.idTokens.Verify(ctx, got.ID)
	switch {
	case err != nil:
		return "", errors.New("the issuer's ID token is not valid")
	case token.Nonce != l.nonce:
		return "", errors.New("the issuer's ID token belongs to another sign-in")
	case token.Subject == "" || len(token.Subject) > maxName:
		return "", errors.New("the issuer's ID token has no subject")
	}
	return l.v.cfg.Issuer + "\n" + token.Subject, nil
}
