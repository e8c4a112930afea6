package api

import "net/http"

// A route is one thing that is served, with what its clients are told of it: the
// description of the API is made of the same table that serves, and so cannot say
// anything else.
type route struct {
	method, path string // as net/http's patterns have them
	id           string // operationId
	tag          string
	summary      string
	query        []parameter
	body         string // the schema of a JSON body; "": none. bytes: of any type
	status       int    // of the good answer
	answer       string // its schema; "": no JSON
	streams      bool   // the answer may be server-sent events
	open         bool   // the secret is in the address, and no token is asked for
	serve        http.HandlerFunc
	errors       []int // beside those that every request may have
}

type parameter struct{ name, what string }

// anyBytes is the body or answer that is a file.
const anyBytes = "bytes"

// served are all routes.
func (a *API) served() []route {
	routes := []route{{
		method: "GET", path: "/openapi.json", id: "describe", tag: "description", summary: "This description",
		status: 200, answer: "Object", serve: func(w http.ResponseWriter, _ *http.Request) { raw(w, http.StatusOK, a.openapi()) },
	}}
	if a.cfg.Models != nil {
		routes = append(routes, a.modelRoutes()...)
	}
	if a.cfg.Models != nil && a.cfg.Responses != nil {
		routes = append(routes, a.responseRoutes()...)
	}
	if a.cfg.Tools != nil {
		routes = append(routes, a.toolRoutes()...)
	}
	if a.cfg.Sessions != nil {
		routes = append(routes, a.sessionRoutes()...)
	}
	if a.cfg.Keys != nil && a.cfg.Blobs != nil {
		routes = append(routes, a.artifactRoutes()...)
	}
	if a.cfg.Approvals != nil {
		routes = append(routes, a.approvalRoutes()...)
	}
	return routes
}

func (a *API) modelRoutes() []route {
	failures := []int{404, 409, 429, 500, 503, 504}
	return []route{{
		method: "POST", path: "/v1/chat/completions", id: "createChatCompletion", tag: "models", summary: "Ask a model, which has the host's tools, in OpenAI's form",
		body: "ChatCompletionRequest", status: 200, answer: "ChatCompletion", streams: true, serve: a.chat, errors: failures,
	}, {
		method: "POST", path: "/v1/responses", id: "createResponse", tag: "models", summary: "Ask a model, which has the host's tools, in the form of OpenAI's Responses API",
		body: "ResponseRequest", status: 200, answer: "Response", streams: true, serve: a.respond, errors: failures,
	}, {
		method: "POST", path: "/v1/messages", id: "createMessage", tag: "models", summary: "Ask a model, which has the host's tools, in Anthropic's form",
		body: "MessageRequest", status: 200, answer: "Message", streams: true, serve: a.messages, errors: failures,
	}, {
		method: "POST", path: "/v1/messages/count_tokens", id: "countTokens", tag: "models", summary: "About how many tokens such a request has, with the host's tools",
		body: "MessageRequest", status: 200, answer: "TokenCount", serve: a.countTokens, errors: failures,
	}, {
		method: "GET", path: "/v1/models", id: "listModels", tag: "models", summary: "The models that can be asked, in a form that OpenAI's and Anthropic's clients read",
		status: 200, answer: "ModelList", serve: a.listModels,
	}, {
		method: "GET", path: "/v1/models/{id...}", id: "getModel", tag: "models", summary: "One of them",
		status: 200, answer: "Model", serve: a.showModel, errors: []int{404},
	}}
}

func (a *API) responseRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/responses/{id}", id: "getResponse", tag: "models", summary: "A stored response",
		status: 200, answer: "Response", serve: a.showResponse, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/v1/responses/{id}", id: "deleteResponse", tag: "models", summary: "Forget it; no request can go on with it, or with those that went on with it",
		status: 200, answer: "Deleted", serve: a.deleteResponse, errors: []int{404, 503},
	}, {
		method: "GET", path: "/v1/responses/{id}/input_items", id: "listInputItems", tag: "models", summary: "The items of its request",
		query:  []parameter{{"limit", "how many, from 1 to 100; 20 if it is not given"}, {"order", "asc, or desc (the default)"}, {"after", "the id of the item to go on after"}},
		status: 200, answer: "InputItemList", serve: a.listInput, errors: []int{404, 503},
	}}
}

func (a *API) toolRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/tools", id: "listTools", tag: "tools", summary: "The host's tools",
		query:  []parameter{{"format", "the form of the definitions: mcp (the default), openai, anthropic or gemini"}},
		status: 200, answer: "ToolList", serve: a.listTools,
	}, {
		method: "POST", path: "/v1/tools/{name}", id: "callTool", tag: "tools", summary: "Call a tool. A tool that says that it failed answers with isError; a call that waits for approval with 202",
		body: "ToolCall", status: 200, answer: "ToolResult", serve: a.callTool, errors: []int{403, 404, 429, 500, 503, 504},
	}}
}

func (a *API) sessionRoutes() []route {
	return []route{{
		method: "POST", path: "/v1/sessions", id: "createSession", tag: "sessions", summary: "Begin a conversation that is kept",
		body: "SessionChange", status: 201, answer: "Session", serve: a.createSession, errors: []int{503},
	}, {
		method: "GET", path: "/v1/sessions", id: "listSessions", tag: "sessions", summary: "All of them, those first that were used last",
		status: 200, answer: "SessionList", serve: a.listSessions, errors: []int{503},
	}, {
		method: "GET", path: "/v1/sessions/{id}", id: "getSession", tag: "sessions", summary: "One of them",
		status: 200, answer: "Session", serve: a.showSession, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}", id: "renameSession", tag: "sessions", summary: "Give it another name",
		body: "SessionChange", status: 200, answer: "Session", serve: a.renameSession, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/v1/sessions/{id}", id: "deleteSession", tag: "sessions", summary: "Forget it",
		status: 200, answer: "Deleted", serve: a.deleteSession, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}/fork", id: "forkSession", tag: "sessions", summary: "Make another of its first messages, or of all",
		body: "SessionFork", status: 201, answer: "Session", serve: a.forkSession, errors: []int{404, 503},
	}, {
		method: "GET", path: "/v1/sessions/{id}/messages", id: "listMessages", tag: "sessions", summary: "Its messages, the host's calls and their results among them, in OpenAI's form",
		status: 200, answer: "MessageList", serve: a.listMessages, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}/messages", id: "addMessages", tag: "sessions", summary: "Add messages, in OpenAI's form, without asking a model; each call needs its result",
		body: "MessageAddition", status: 200, answer: "Session", serve: a.addMessages, errors: []int{404, 503},
	}}
}

func (a *API) artifactRoutes() []route {
	return []route{{
		method: "POST", path: "/artifact", id: "createArtifact", tag: "artifacts", summary: "Keep a file of up to 50 MiB, with its type and name",
		query: []parameter{{"name", "the file's name; or in Content-Disposition"}}, body: anyBytes, status: 201, answer: "Artifact", serve: a.createArtifact, errors: []int{503, 507},
	}, {
		method: "GET", path: "/artifact", id: "listArtifacts", tag: "artifacts", summary: "The files that are kept",
		status: 200, answer: "ArtifactList", serve: a.listArtifacts, errors: []int{503},
	}, {
		method: "GET", path: "/artifact/{id}", id: "getArtifact", tag: "artifacts", summary: "Download one: always as an attachment, which no browser runs",
		status: 200, answer: anyBytes, serve: a.showArtifact, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/artifact/{id}", id: "deleteArtifact", tag: "artifacts", summary: "Delete one",
		status: 200, answer: "Deleted", serve: a.deleteArtifact, errors: []int{404, 503},
	}}
}

func (a *API) approvalRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/approvals", id: "listApprovals", tag: "approvals", summary: "The calls that wait for a decision",
		query: []parameter{{"state", "all: also those of the last day"}}, status: 200, answer: "ApprovalList", serve: a.listApprovals, errors: []int{503},
	}, {
		method: "GET", path: "/v1/approvals/{id}", id: "getApproval", tag: "approvals", summary: "One of them",
		query: []parameter{{"wait", "until it is decided on, at most so long, like 30s"}}, status: 200, answer: "Approval", serve: a.showApproval, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/approvals/{id}", id: "decide", tag: "approvals", summary: "Decide on it",
		body: "Decision", status: 200, answer: "Approval", serve: a.decideApproval, errors: []int{403, 404, 409, 503},
	}, {
		method: "POST", path: "/v1/callback/{id}/{token}", id: "redeem", tag: "approvals", summary: "Decide on it with its one-time token and no other",
		body: "Decision", status: 200, answer: "Approval", open: true, serve: a.redeemApproval, errors: []int{403, 404, 409, 503},
	}}
}
