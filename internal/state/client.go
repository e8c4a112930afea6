package state

import (
	"crypto/sha256"
	"encoding/hex"
)

// clientBytes is how much of a hash names a client.
const clientBytes = 12

// ForSession returns the store of one session of the client. session is the
// name that the client gave the session, as a host does for each of its own
// clients; "" means the client itself. A session name only tells the sessions
// of one client apart: no client can name the session of another.
func (s *Store) ForSession(session string) *Store {
	if session == "" {
		return s
	}
	return &Store{directory: s.directory, client: clientHash(s.config.Client, session)}
}

// clientHash names a session of a client, so that nothing of its name shows
// in the state directory.
func clientHash(client, session string) string {
	sum := sha256.Sum256([]byte(client + "\x00" + session))
	return hex.EncodeToString(sum[:clientBytes])
}
