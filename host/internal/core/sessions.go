package core

import (
	"fmt"
	"time"

	conversations "github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Store is where conversations, and what belongs to them, are kept. Where nothing
// says where state is kept, it is this process alone that remembers them.
func (a *App) Store() *store.Store {
	if a.store == nil {
		return a.forgetful()
	}
	a.used.Store(true)
	return a.store
}

// Sessions are the conversations that are kept, of all hosts with the same store.
func (a *App) Sessions() *conversations.Book {
	s := a.Store()
	book := &conversations.Book{Keys: s.Keys, Log: s.Log, Blobs: s.Blobs}
	book.Forgot = func(old conversations.Session, most int) {
		a.tell(fmt.Sprintf("the session %s (%q, last used %s) was deleted to make space for a new one: at most %d are kept; delete unneeded sessions", old.ID, old.Name, old.Updated.Format(time.DateOnly), most))
	}
	if a.store == nil { // they take memory
		book.Most, book.Size = 100, 8<<20
	}
	return book
}

// Responses are the stored responses of all hosts with the same store.
func (a *App) Responses() *responsestore.Book {
	s := a.Store()
	book := &responsestore.Book{Keys: s.Keys, Blobs: s.Blobs}
	if a.store == nil { // they take memory
		book.Most, book.Total, book.Size = 100, 32<<20, 8<<20
	}
	return book
}
