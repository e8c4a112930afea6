package state

import (
	"crypto/sha256"
	"encoding/hex"
)

// clientHashBytes is the number of bytes of the hash that identifies a client.
const clientHashBytes = 12

// ForSession returns the store of one session of the client. session is the
// name that the client gave the session, as a host does for each of its
// clients; "" means the client itself. A session name only distinguishes the
// sessions of one client: no client can name another client's session.
func (s *Store) ForSession(session string) *Store {
	if session == "" {
		return s
	}
	return &Store{sharedStore: s.sharedStore, client: clientHash(s.config.Client, session)}
}

// clientHash returns an identifier of a session of a client, which does not
// reveal their names in the state directory.
func clientHash(client, session string) string {
	sum := sha256.Sum256([]byte(client + "\x00" + session))
	return hex.EncodeToString(sum[:clientHashBytes])
}
