package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// agentLifetime is the time for which an agent may continue after its starting call was
// answered.
const agentLifetime = 75 * time.Minute

// Limits of concurrent tokens, of one caller and in total: each exists while its agent
// works, and no client may take all of them.
const (
	maxTokensPerCaller = 128
	maxTokens          = 1024
)

// CallbackTokens holds the tokens with which agents call back on behalf of running calls.
// The zero value has none. It is safe for concurrent use.
type CallbackTokens struct {
	mu         sync.Mutex
	grants     map[[sha256.Size]byte]*tokenGrant // by digest, so that comparison reveals nothing
	perAccount map[string]int                    // number of tokens by call.Caller.AccountName
}

// tokenGrant lets a client call as a caller, until it is over.
type tokenGrant struct {
	as           call.Caller     // for whom the client calls
	over         context.Context // ends with the token
	end          context.CancelFunc
	conns        int  // entered connections; protected by CallbackTokens.mu
	outlivesCall bool // the call was answered while the agent still runs; protected by CallbackTokens.mu
}

// A CallbackToken is a token for one call.
type CallbackToken struct {
	Token string
	ID    string // name of the agent that uses the token, for others

	tokens *CallbackTokens
	key    [sha256.Size]byte
	grant  *tokenGrant
	bound  func() bool // unbinds the grant from the call's context
}

// Issue creates a token for a call of a caller. It is valid until ctx ends or Revoke
// ends it; connections that used it are then closed. A client with the token makes calls
// as caller, one level deeper. It returns LIMIT_REACHED if there are too many tokens.
func (t *CallbackTokens) Issue(ctx context.Context, caller call.Caller) (*CallbackToken, error) {
	token := rand.Text()
	l := &CallbackToken{Token: token, tokens: t, key: sha256.Sum256([]byte(token))}
	l.ID = hex.EncodeToString(l.key[:8])
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	l.grant = &tokenGrant{over: over, end: end}
	// The capabilities of the caller's client do not apply to the agent.
	l.grant.as = call.Caller{
		EntryPoint: caller.EntryPoint, ID: caller.ID, User: caller.User, Subject: caller.Subject, Token: caller.Token, Account: caller.Account, ModelTurn: caller.ModelTurn, Depth: caller.Depth + 1,
		Agent: l.ID, Profile: caller.Profile, Tools: caller.Tools,
	}
	if err := t.add(l); err != nil {
		end()
		return nil, err
	}
	l.bound = context.AfterFunc(ctx, func() { t.endGrant(l.key, l.grant) })
	return l, nil
}

// add adds a token. It returns LIMIT_REACHED at the limits of the caller and of the
// host.
func (t *CallbackTokens) add(l *CallbackToken) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	account := l.grant.as.AccountName()
	switch {
	case t.perAccount[account] >= maxTokensPerCaller:
		return toolerr.New(toolerr.LimitReached, "%d agents of this caller are running, the maximum is %d: wait for some of them", t.perAccount[account], maxTokensPerCaller)
	case len(t.grants) >= maxTokens:
		return toolerr.New(toolerr.LimitReached, "%d agents are running for all callers, the maximum is %d: try again later", len(t.grants), maxTokens)
	}
	if t.grants == nil {
		t.grants, t.perAccount = map[[sha256.Size]byte]*tokenGrant{}, map[string]int{}
	}
	t.grants[l.key] = l.grant
	t.perAccount[account]++
	return nil
}

// Revoke ends a token. outlives means that the call was answered while its agent still
// runs: then the token ends when the last entered connection does, or after agentLifetime.
// Revoke may be called again.
func (l *CallbackToken) Revoke(outlives bool) {
	if !l.bound() || !outlives || l.grant.over.Err() != nil {
		l.tokens.endGrant(l.key, l.grant)
		return
	}
	l.tokens.mu.Lock()
	l.grant.outlivesCall = true
	l.tokens.mu.Unlock()
	// A client can still enter meanwhile, such as an agent that waited for another
	// one.
	late := time.AfterFunc(agentLifetime, func() { l.tokens.endGrant(l.key, l.grant) })
	context.AfterFunc(l.grant.over, func() { late.Stop() })
}

// endGrant ends a grant and so its connections. It removes the grant, unless the key has
// another one by now. It may be called again.
func (t *CallbackTokens) endGrant(key [sha256.Size]byte, l *tokenGrant) {
	t.mu.Lock()
	if t.grants[key] == l {
		delete(t.grants, key)
		account := l.as.AccountName()
		if t.perAccount[account]--; t.perAccount[account] == 0 {
			delete(t.perAccount, account)
		}
	}
	t.mu.Unlock()
	l.end()
}

// enter begins a connection with a token. It returns the caller to act for, a context that
// ends with the token, and leave, to be called at the end of the connection. ok is false if
// the token is unknown or has ended.
func (t *CallbackTokens) enter(token string) (as call.Caller, over context.Context, leave func(), ok bool) {
	key := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.grants[key]
	if l == nil || l.over.Err() != nil {
		return call.Caller{}, nil, nil, false
	}
	l.conns++
	return l.as, l.over, func() {
		t.mu.Lock()
		l.conns--
		last := l.conns == 0 && l.outlivesCall
		t.mu.Unlock()
		if last {
			t.endGrant(key, l)
		}
	}, true
}

// Close ends all tokens and closes their connections.
func (t *CallbackTokens) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.grants {
		l.end()
	}
	clear(t.grants)
	clear(t.perAccount)
}
