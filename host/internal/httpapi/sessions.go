package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// intoString returns a function for readMembers that decodes a string into to.
func intoString(to *string) func([]byte) error {
	return func(v []byte) error { return json.Unmarshal(v, to) }
}

// writeSession answers with a session, or with err.
func writeSession(w http.ResponseWriter, r *http.Request, status int, s *conversation.Session, err error) {
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, status, s)
}

// createSession answers POST /v1/sessions.
func (a *API) createSession(w http.ResponseWriter, r *http.Request) {
	var s conversation.Session
	if err := readMembers(w, r, map[string]func([]byte) error{"name": intoString(&s.Name), "model": intoString(&s.Model)}); err != nil {
		writeError(w, r, err)
		return
	}
	made, err := a.cfg.Sessions.Create(r.Context(), s)
	writeSession(w, r, http.StatusCreated, made, err)
}

// listSessions answers GET /v1/sessions.
func (a *API) listSessions(w http.ResponseWriter, r *http.Request) {
	all, err := a.cfg.Sessions.List(r.Context())
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, listOf(append([]conversation.Session{}, all...)))
}

// showSession answers GET /v1/sessions/{id}.
func (a *API) showSession(w http.ResponseWriter, r *http.Request) {
	s, err := a.cfg.Sessions.Get(r.Context(), r.PathValue("id"))
	writeSession(w, r, http.StatusOK, s, err)
}

// renameSession answers POST /v1/sessions/{id}: it changes the name or the model.
func (a *API) renameSession(w http.ResponseWriter, r *http.Request) {
	var name, model *string
	err := readMembers(w, r, map[string]func([]byte) error{
		"name":  func(v []byte) error { return json.Unmarshal(v, &name) },
		"model": func(v []byte) error { return json.Unmarshal(v, &model) },
	})
	id := r.PathValue("id")
	var s *conversation.Session
	if err == nil && name == nil && model == nil {
		err = invalid("name", "give a name or a model")
	}
	if err == nil && name != nil {
		s, err = a.cfg.Sessions.Rename(r.Context(), id, *name)
	}
	if err == nil && model != nil {
		s, err = a.cfg.Sessions.SetModel(r.Context(), id, *model)
	}
	writeSession(w, r, http.StatusOK, s, err)
}

// deleteSession answers DELETE /v1/sessions/{id}.
func (a *API) deleteSession(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := a.cfg.Sessions.Delete(r.Context(), id); err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, deletedObject{id, "session.deleted", true})
}

// forkSession answers POST /v1/sessions/{id}/fork: it copies all messages or the first
// ones.
func (a *API) forkSession(w http.ResponseWriter, r *http.Request) {
	var name string
	upTo := 0
	err := readMembers(w, r, map[string]func([]byte) error{
		"name": intoString(&name),
		"messages": func(v []byte) error {
			err := json.Unmarshal(v, &upTo)
			if err == nil && upTo <= 0 {
				err = toolerr.New(toolerr.InvalidParams, "it must be a number above 0")
			}
			return err
		},
	})
	var s *conversation.Session
	if err == nil {
		s, err = a.cfg.Sessions.Fork(r.Context(), r.PathValue("id"), name, upTo)
	}
	writeSession(w, r, http.StatusCreated, s, err)
}

// listMessages answers GET /v1/sessions/{id}/messages, in OpenAI's format.
func (a *API) listMessages(w http.ResponseWriter, r *http.Request) {
	all, err := a.cfg.Sessions.Messages(r.Context(), r.PathValue("id"))
	if err != nil {
		writeError(w, r, err)
		return
	}
	request, _ := openai.EncodeRequest(&llm.Request{Messages: all}, openai.Options{Extensions: true})
	writeAnswer(w, http.StatusOK, listOf(request.Get("messages")))
}

// addMessages answers POST /v1/sessions/{id}/messages: it appends messages in OpenAI's format.
func (a *API) addMessages(w http.ResponseWriter, r *http.Request) {
	v, err := readObject(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	list := v.Get("messages")
	for _, m := range v.PeekMembers() {
		if m.Name != "messages" {
			writeError(w, r, invalid(truncate(m.Name, 40), "%.40s: unknown member", m.Name))
			return
		}
	}
	err = objectRule(map[string]valueRule{"messages": messagesRule()}).check(v, "", "")
	if err == nil {
		err = checkChatMessages(list)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	request, _, err := openai.DecodeRequest(tree.Obj("messages", list).JSON(), openai.Options{Extensions: true})
	if err == nil {
		err = checkPairs(request.Messages)
	}
	if err != nil {
		writeError(w, r, toolerr.New(toolerr.InvalidParams, "%w", err).With("param", "messages"))
		return
	}
	s, err := a.cfg.Sessions.Append(r.Context(), r.PathValue("id"), request.Messages...)
	writeSession(w, r, http.StatusOK, s, err)
}
