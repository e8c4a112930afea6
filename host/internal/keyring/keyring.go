// Package keyring stores small secrets in the keyring of the user's system: the Secret
// Service (over D-Bus), Keychain of macOS, or Credential Manager of Windows.
//
// It does nothing before the first request. Every request has a time limit, because a
// keyring can wait for a password, and a D-Bus can accept a connection without answering.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	system "github.com/zalando/go-keyring"
)

// service is the name under which the system lists the secrets.
const service = "toolroom"

// Limits of a request.
const (
	ShortTimeout = 5 * time.Second // without a user who waits for it
	LongTimeout  = time.Minute     // while the user can enter the keyring's password

	connectTimeout = 3 * time.Second // until the keyring's service has answered once
)

// ErrNotFound is returned for a secret that the keyring does not have.
var ErrNotFound = errors.New("the keyring does not have the key")

// errBusy is returned while an earlier request has not ended.
var errBusy = errors.New("the keyring does not answer")

// Keyring is the keyring of the system. It is safe for concurrent use. It remembers the
// secrets that it has read or written. Make it with New.
type Keyring struct {
	limit time.Duration
	turn  chan struct{} // holds a value while a request runs

	mu    sync.Mutex
	known map[string]string
	late  bool // the running request has exceeded its limit
}

// New returns the keyring of the system. limit bounds the time of each request. It requests
// nothing.
func New(limit time.Duration) *Keyring {
	return &Keyring{limit: limit, turn: make(chan struct{}, 1), known: map[string]string{}}
}

// Get returns a secret, or ErrNotFound. It requests each secret only once. It returns
// another error if the keyring cannot be used or does not answer in time.
func (k *Keyring) Get(ctx context.Context, item string) (secret string, err error) {
	k.mu.Lock()
	secret, ok := k.known[item]
	k.mu.Unlock()
	if ok {
		return secret, nil
	}
	secret, err = k.run(ctx, func() (string, error) { return system.Get(service, item) })
	if errors.Is(err, system.ErrNotFound) {
		return "", ErrNotFound
	}
	if err == nil {
		k.remember(item, secret)
	}
	return secret, err
}

// Set stores a secret. The secret and the name may be at most 2 KiB together; Windows and
// macOS accept no longer ones. It returns an error if the keyring cannot be used or does
// not answer in time.
func (k *Keyring) Set(ctx context.Context, item, secret string) error {
	_, err := k.run(ctx, func() (string, error) { return "", system.Set(service, item, secret) })
	if err == nil {
		k.remember(item, secret)
	}
	return err
}

// Delete deletes a secret. It returns nil if the keyring does not have it.
func (k *Keyring) Delete(ctx context.Context, item string) error {
	k.mu.Lock()
	delete(k.known, item)
	k.mu.Unlock()
	_, err := k.run(ctx, func() (string, error) { return "", system.Delete(service, item) })
	if errors.Is(err, system.ErrNotFound) {
		return nil
	}
	return err
}

// remember caches a secret for Get.
func (k *Keyring) remember(item, secret string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[item] = secret
}

// run runs one request after the other. The library takes no context: a request that does
// not end within the limit continues in its goroutine, and until then all other requests
// fail at once.
func (k *Keyring) run(ctx context.Context, request func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, k.limit, fmt.Errorf("%w within %v; it may be locked", errBusy, k.limit))
	defer cancel()
	if k.isLate() {
		return "", errBusy
	}
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	type result struct {
		secret string
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer k.end()
		if err := reachable(ctx); err != nil {
			done <- result{err: err}
			return
		}
		secret, err := request()
		done <- result{secret, err}
	}()
	select {
	case r := <-done:
		return r.secret, r.err
	case <-ctx.Done():
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case r := <-done: // end has been called, or waits for the mutex
		return r.secret, r.err
	default:
		k.late = true
		return "", context.Cause(ctx)
	}
}

// isLate reports whether the keyring has not answered a request in time.
func (k *Keyring) isLate() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late
}

// end ends the running request.
func (k *Keyring) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = false
	<-k.turn
}
