package core

import (
	"fmt"
	"time"

	conversations "github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Store returns the store for conversations: the host's store, or one in memory if there
// is no state directory.
func (a *App) Store() *store.Store {
	if a.store == nil {
		return a.memoryStore()
	}
	a.storeUsed.Store(true)
	return a.store
}

// Sessions returns the stored conversations of all hosts with the same store.
func (a *App) Sessions() *conversations.Store {
	s := a.Store()
	book := &conversations.Store{Keys: s.Keys, Log: s.Log, Blobs: s.Blobs}
	book.OnRemoved = func(old conversations.Session, most int) {
		a.notify(fmt.Sprintf("the session %s (%q, last used %s) was deleted to make space for a new one: at most %d are kept; delete unneeded sessions", old.ID, old.Name, old.Updated.Format(time.DateOnly), most))
	}
	if a.store == nil { // conversations use memory
		book.Most, book.Size = 100, 8<<20
	}
	return book
}

// Responses returns the stored responses of all hosts with the same store.
func (a *App) Responses() *responsestore.Store {
	s := a.Store()
	book := &responsestore.Store{Keys: s.Keys, Blobs: s.Blobs}
	if a.store == nil { // responses use memory
		book.MaxResponses, book.MaxTotal, book.MaxConversation = 100, 32<<20, 8<<20
	}
	return book
}
