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

// Limits of concurrent loans, of one caller and in total: each exists while its agent
// works, and no client may take all of them.
const (
	maxLoansOfOne = 128
	maxLoans      = 1024
)

// Loans holds the tokens lent to agents for calling back on behalf of running calls.
// The zero value has none. It is safe for concurrent use.
type Loans struct {
	mu     sync.Mutex
	leases map[[sha256.Size]byte]*lease // by digest, so that comparison reveals nothing
	lent   map[string]int               // number of loans by call.Caller.AccountName
}

// lease lets a client call as a caller, until it is over.
type lease struct {
	as           call.Caller     // for whom the client calls
	over         context.Context // ends with the loan
	end          context.CancelFunc
	conns        int  // entered connections; protected by Loans.mu
	outlivesCall bool // the call was answered while the agent still runs; protected by Loans.mu
}

// A Loan is a token for one call.
type Loan struct {
	Token string
	ID    string // name of the agent that uses the token, for others

	loans *Loans
	key   [sha256.Size]byte
	lease *lease
	bound func() bool // unbinds the lease from the call's context
}

// Lend creates a token for a call of a caller. It is valid until ctx ends or GiveBack
// ends it; connections that used it are then closed. A client with the token makes calls
// as caller, one level deeper. It returns LIMIT_REACHED if there are too many loans.
func (t *Loans) Lend(ctx context.Context, caller call.Caller) (*Loan, error) {
	token := rand.Text()
	l := &Loan{Token: token, loans: t, key: sha256.Sum256([]byte(token))}
	l.ID = hex.EncodeToString(l.key[:8])
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	l.lease = &lease{over: over, end: end}
	// The capabilities of the caller's client do not apply to the agent.
	l.lease.as = call.Caller{
		EntryPoint: caller.EntryPoint, ID: caller.ID, User: caller.User, Subject: caller.Subject, Token: caller.Token, Account: caller.Account, ModelTurn: caller.ModelTurn, Depth: caller.Depth + 1,
		Agent: l.ID, Profile: caller.Profile, Tools: caller.Tools,
	}
	if err := t.add(l); err != nil {
		end()
		return nil, err
	}
	l.bound = context.AfterFunc(ctx, func() { t.endLease(l.key, l.lease) })
	return l, nil
}

// add adds a loan. It returns LIMIT_REACHED at the limits of the caller and of the
// host.
func (t *Loans) add(l *Loan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	whose := l.lease.as.AccountName()
	switch {
	case t.lent[whose] >= maxLoansOfOne:
		return toolerr.New(toolerr.LimitReached, "%d agents of this caller are running, the maximum is %d: wait for some of them", t.lent[whose], maxLoansOfOne)
	case len(t.leases) >= maxLoans:
		return toolerr.New(toolerr.LimitReached, "%d agents are running for all callers, the maximum is %d: try again later", len(t.leases), maxLoans)
	}
	if t.leases == nil {
		t.leases, t.lent = map[[sha256.Size]byte]*lease{}, map[string]int{}
	}
	t.leases[l.key] = l.lease
	t.lent[whose]++
	return nil
}

// GiveBack ends a loan. outlives means that the call was answered while its agent still
// runs: then the loan ends when the last entered connection does, or after agentLifetime.
// GiveBack may be called again.
func (l *Loan) GiveBack(outlives bool) {
	if !l.bound() || !outlives || l.lease.over.Err() != nil {
		l.loans.endLease(l.key, l.lease)
		return
	}
	l.loans.mu.Lock()
	l.lease.outlivesCall = true
	l.loans.mu.Unlock()
	// A client can still enter meanwhile, such as an agent that waited for another
	// one.
	late := time.AfterFunc(agentLifetime, func() { l.loans.endLease(l.key, l.lease) })
	context.AfterFunc(l.lease.over, func() { late.Stop() })
}

// endLease ends a lease and so its connections. It removes the lease, unless the key has
// another one by now. It may be called again.
func (t *Loans) endLease(key [sha256.Size]byte, l *lease) {
	t.mu.Lock()
	if t.leases[key] == l {
		delete(t.leases, key)
		whose := l.as.AccountName()
		if t.lent[whose]--; t.lent[whose] == 0 {
			delete(t.lent, whose)
		}
	}
	t.mu.Unlock()
	l.end()
}

// enter begins a connection with a token. It returns the caller to act for, a context that
// ends with the loan, and leave, to be called at the end of the connection. ok is false if
// the token is unknown or its loan has ended.
func (t *Loans) enter(token string) (as call.Caller, over context.Context, leave func(), ok bool) {
	key := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[key]
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
			t.endLease(key, l)
		}
	}, true
}

// Close ends all loans and closes their connections.
func (t *Loans) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leases {
		l.end()
	}
	clear(t.leases)
	clear(t.lent)
}
