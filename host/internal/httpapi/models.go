package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// model describes a model for the clients of both vendors.
type model struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Created   int64  `json:"created"`
	OwnedBy   string `json:"owned_by"`
	Type      string `json:"type"`
	Name      string `json:"display_name"`
	CreatedAt string `json:"created_at"`
	Window    int    `json:"context_window,omitempty"`
	MaxOutput int    `json:"max_output_tokens,omitempty"`
}

// modelOf describes a model under a name. Its creation time is unknown.
func modelOf(name string, i provider.Info) model {
	return model{
		ID: name, Object: "model", OwnedBy: i.Provider, Type: "model", Name: name,
		CreatedAt: time.Unix(0, 0).UTC().Format(time.RFC3339), Window: i.Window, MaxOutput: i.MaxOutput,
	}
}

// listModels answers GET /v1/models.
func (a *API) listModels(w http.ResponseWriter, r *http.Request) {
	all := []model{}
	for _, i := range a.cfg.Models.List(r.Context()) {
		all = append(all, modelOf(i.Name, i))
	}
	page := map[string]any{"object": "list", "data": all, "has_more": false, "first_id": nil, "last_id": nil}
	if len(all) > 0 {
		page["first_id"], page["last_id"] = all[0].ID, all[len(all)-1].ID
	}
	writeAnswer(w, http.StatusOK, page)
}

// showModel answers GET /v1/models/{id}; the id may be followed by chosen tools.
func (a *API) showModel(w http.ResponseWriter, r *http.Request) {
	id, _, _ := strings.Cut(r.PathValue("id"), "|") // without the chosen tools, which follow the name
	if id == "" {
		writeError(w, r, modelError(toolerr.New(toolerr.NoModel, "the model's name is missing; GET /v1/models lists the models")))
		return
	}
	m, err := a.cfg.Models.Get(r.Context(), id)
	if err != nil {
		writeError(w, r, modelError(err))
		return
	}
	writeAnswer(w, http.StatusOK, modelOf(id, m.Info()))
}
