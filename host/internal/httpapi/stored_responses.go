package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/conversation/responsestore"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// storeResponse stores a response with the items of its request, also after the client has
// disconnected. Items without an id get one. It waits at most storeTimeout.
func (a *API) storeResponse(ctx context.Context, f *responseWriter, messages []llm.Message, body *tree.Value) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	q := f.q
	input := make([]json.RawMessage, 0, len(q.response.input.PeekItems()))
	for i, item := range q.response.input.PeekItems() {
		if textOf(item, "id") == "" {
			item = item.Clone()
			item.Set("id", tree.Str("in_"+strings.TrimPrefix(f.id, "resp_")+"_"+strconv.Itoa(i)))
		}
		input = append(input, item.JSON())
	}
	return a.cfg.Responses.Create(ctx, responsestore.Response{
		ID: f.id, Previous: q.response.previous, Account: q.caller.Account, Caller: q.caller.ID, Chain: q.response.before,
	}, responsestore.Content{Body: body.JSON(), Input: input, Messages: append(slices.Clone(f.newMessages), messages...)})
}

// previousConversation returns the conversation that a request continues, and its size in bytes.
// It returns status 400 if the previous response does not exist, is another caller's, or
// continues a deleted one.
func (a *API) previousConversation(ctx context.Context, q *requestOptions) ([]llm.Message, int64, error) {
	gone := func(message string) error {
		return &apiError{status: http.StatusBadRequest, code: "previous_response_not_found", param: "previous_response_id", message: message}
	}
	id := q.response.previous
	unknown := gone("Previous response with id '" + truncate(id, 80) + "' not found.")
	if a.cfg.Responses == nil {
		return nil, 0, unknown
	}
	r, _, err := a.cfg.Responses.Get(ctx, id)
	if toolerr.Is(err, toolerr.NotFound) || err == nil && (r.Account != q.caller.Account || r.Caller != q.caller.ID) {
		return nil, 0, unknown
	}
	if err != nil {
		return nil, 0, err
	}
	messages, bytes, err := a.cfg.Responses.Chain(ctx, id)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, 0, gone(err.Error())
	}
	return messages, bytes, err
}

// storedItem returns an item of a stored response of the same caller; nil if it is not found.
func (a *API) storedItem(ctx context.Context, q *requestOptions, id string) (*tree.Value, error) {
	parts := strings.Split(id, "_")
	if a.cfg.Responses == nil || len(parts) != 3 {
		return nil, nil
	}
	r, c, err := a.cfg.Responses.Get(ctx, "resp_"+parts[1])
	if toolerr.Is(err, toolerr.NotFound) || err == nil && (r.Account != q.caller.Account || r.Caller != q.caller.ID) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, item := range append(tree.Raw(c.Body).Get("output").PeekItems(), tree.Raw(jsonList(c.Input)).PeekItems()...) {
		if textOf(item, "id") == id {
			return item, nil
		}
	}
	return nil, nil
}

// jsonList returns a JSON array of items.
func jsonList(items []json.RawMessage) json.RawMessage {
	list := tree.List()
	for _, item := range items {
		list.Items = append(list.Items, tree.Raw(item))
	}
	return list.JSON()
}

// findResponse returns the response whose id is in the request's path, or NOT_FOUND: also if it
// is another account's.
func (a *API) findResponse(r *http.Request) (*responsestore.Response, *responsestore.Content, error) {
	id := r.PathValue("id")
	found, content, err := a.cfg.Responses.Get(r.Context(), id)
	if err == nil && found.Account != gateway.Account(r.RemoteAddr) {
		err = toolerr.New(toolerr.NotFound, "Response with id '%.80s' not found.", id)
	}
	return found, content, err
}

// showResponse answers GET /v1/responses/{id}.
func (a *API) showResponse(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("stream") == "true" {
		writeError(w, r, invalid("stream", "a stored response cannot be streamed; request it without stream"))
		return
	}
	_, content, err := a.findResponse(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, content.Body)
}

// deleteResponse answers DELETE /v1/responses/{id}.
func (a *API) deleteResponse(w http.ResponseWriter, r *http.Request) {
	found, _, err := a.findResponse(r)
	if err == nil {
		err = a.cfg.Responses.Delete(r.Context(), found.ID)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, deletedObject{found.ID, "response.deleted", true})
}

// listInput answers GET /v1/responses/{id}/input_items: the items of the response's request, the
// last one first unless order is asc.
func (a *API) listInput(w http.ResponseWriter, r *http.Request) {
	_, content, err := a.findResponse(r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	query := r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			writeError(w, r, invalid("limit", "limit must be a number from 1 to 100"))
			return
		}
	}
	items := content.Input
	switch query.Get("order") {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		writeError(w, r, invalid("order", "order must be asc or desc, not %.20q", query.Get("order")))
		return
	}
	idOf := func(item json.RawMessage) string { return textOf(tree.Raw(item), "id") }
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(items, func(item json.RawMessage) bool { return idOf(item) == after })
		if at < 0 {
			writeError(w, r, invalid("after", "after must be the id of an item of this response"))
			return
		}
		items = items[at+1:]
	}
	more := len(items) > limit
	items = items[:min(limit, len(items))]
	page := map[string]any{"object": "list", "data": append([]json.RawMessage{}, items...), "has_more": more, "first_id": nil, "last_id": nil}
	if len(items) > 0 {
		page["first_id"], page["last_id"] = idOf(items[0]), idOf(items[len(items)-1])
	}
	writeAnswer(w, http.StatusOK, page)
}
