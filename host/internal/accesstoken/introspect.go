package accesstoken

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	answerTTL  = time.Minute      // during which an active token is not introspected again
	refusalTTL = 10 * time.Second // during which an inactive token is not
	maxAnswers = 10_000           // remembered
)

// introspect asks the issuer whether an opaque token is active, at most once in answerTTL.
// It returns an *Error for an inactive token, and another error if the issuer cannot be
// asked.
func (v *Verifier) introspect(ctx context.Context, from *issuer, token string) (*claims, error) {
	if from.Introspection == "" {
		return nil, errors.New("the issuer's metadata has no introspection_endpoint")
	}
	key := sha256.Sum256([]byte(token))
	c, known := v.answered.get(key)
	if !known {
		var err error
		if c, err = v.askIntrospection(ctx, from, token); err != nil {
			return nil, err
		}
		v.answered.put(key, c)
	}
	if c == nil {
		return nil, invalidToken("the access token is not active")
	}
	return c, nil
}

// askIntrospection sends the request of introspect. It returns the claims, or nil for a
// token that is not active.
func (v *Verifier) askIntrospection(ctx context.Context, from *issuer, token string) (*claims, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, from.Introspection, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(v.cfg.ClientID), url.QueryEscape(v.cfg.ClientSecret.Reveal())) // RFC 6749, section 2.3.1
	var members map[string]json.RawMessage
	if err := v.requestJSON(req, &members); err != nil {
		return nil, fmt.Errorf("introspection: %w", err)
	}
	c := &claims{members}
	if string(members["active"]) != "true" {
		return nil, nil
	}
	if c.has("iss") && c.text("iss") != v.cfg.Issuer {
		return nil, nil
	}
	return c, nil
}

// introspectionCache remembers answers of the issuer, by hashes of tokens.
type introspectionCache struct {
	now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]cachedAnswer
}

// cachedAnswer is an answer of the issuer about one token.
type cachedAnswer struct {
	claims *claims // nil: not active
	until  time.Time
}

// newIntrospectionCache returns an empty cache with a clock.
func newIntrospectionCache(now func() time.Time) *introspectionCache {
	return &introspectionCache{now: now, known: map[[sha256.Size]byte]cachedAnswer{}}
}

// get returns the answer about the token with a hash; nil claims: not active. ok is false
// if no answer is cached or the answer is too old.
func (a *introspectionCache) get(key [sha256.Size]byte) (c *claims, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, ok := a.known[key]
	if ok && a.now().After(one.until) {
		delete(a.known, key)
		ok = false
	}
	return one.claims, ok
}

// put stores an answer for answerTTL, or for refusalTTL if c is nil.
func (a *introspectionCache) put(key [sha256.Size]byte, c *claims) {
	ttl := answerTTL
	if c == nil {
		ttl = refusalTTL
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAnswers {
		for some := range a.known {
			delete(a.known, some)
			break
		}
	}
	a.known[key] = cachedAnswer{c, a.now().Add(ttl)}
}
