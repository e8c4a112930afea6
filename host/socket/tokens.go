package socket

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/call"
)

// Tokens are what calls under way may be joined with. The zero value has
// none. It is safe for concurrent use.
type Tokens struct {
	mu     sync.Mutex
	leases map[[sha256.Size]byte]lease // by digest: comparing tells nothing
}

type lease struct {
	as   call.Caller
	over context.Context
}

// Lend makes a token for a call of caller's. It is good until ctx ends or
// giveBack is called; then what entered with it is cut off. Who enters calls
// as caller does, one level deeper.
func (t *Tokens) Lend(ctx context.Context, caller call.Caller) (token string, giveBack func()) {
	token = rand.Text()
	key := sha256.Sum256([]byte(token))
	over, end := context.WithCancel(ctx)
	// What the client at the caller's door can do says nothing of the agent.
	as := call.Caller{Door: caller.Door, ID: caller.ID, Account: caller.Account, Turn: caller.Turn, Depth: caller.Depth + 1, Profile: caller.Profile, Tools: caller.Tools}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.leases == nil {
		t.leases = map[[sha256.Size]byte]lease{}
	}
	t.leases[key] = lease{as, over}
	return token, func() {
		t.mu.Lock()
		delete(t.leases, key)
		t.mu.Unlock()
		end()
	}
}

func (t *Tokens) use(token string) (as call.Caller, over context.Context, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.leases[sha256.Sum256([]byte(token))]
	return l.as, l.over, ok && l.over.Err() == nil
}
