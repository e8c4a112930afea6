package httpapi

import "net/http"

// A route is a served method and path with its description. The same table serves
// requests and generates the OpenAPI description, so that they always agree.
type route struct {
	method, path string // patterns of net/http
	id           string // operationId
	tag          string
	summary      string
	query        []parameter
	body         string // name of the schema of a JSON body; "": none. bytes: any type
	status       int    // status of a successful answer
	answer       string // name of its schema; "": no JSON
	streams      bool   // the answer can be server-sent events
	open         bool   // no token is required: the URL contains the secret
	serve        http.HandlerFunc
	errors       []int // in addition to the errors of every request
}

// parameter is a query parameter of a route.
type parameter struct{ name, what string }

// anyBytes is the body or answer of a route that transfers a file.
const anyBytes = "bytes"

// allRoutes returns all routes.
func (a *API) allRoutes() []route {
	routes := []route{{
		method: "GET", path: "/openapi.json", id: "describe", tag: "description", summary: "Get this OpenAPI description",
		status: 200, answer: "Object", serve: func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, a.openapi()) },
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

// modelRoutes returns the routes of models and their answers.
func (a *API) modelRoutes() []route {
	failures := []int{404, 409, 429, 500, 503, 504}
	return []route{{
		method: "POST", path: "/v1/chat/completions", id: "createChatCompletion", tag: "models", summary: "Create a chat completion (OpenAI) by a model that can use the host's tools",
		body: "ChatCompletionRequest", status: 200, answer: "ChatCompletion", streams: true, serve: a.serveChat, errors: failures,
	}, {
		method: "POST", path: "/v1/responses", id: "createResponse", tag: "models", summary: "Create a response (OpenAI Responses API) by a model that can use the host's tools",
		body: "ResponseRequest", status: 200, answer: "Response", streams: true, serve: a.serveResponses, errors: failures,
	}, {
		method: "POST", path: "/v1/messages", id: "createMessage", tag: "models", summary: "Create a message (Anthropic) by a model that can use the host's tools",
		body: "MessageRequest", status: 200, answer: "Message", streams: true, serve: a.serveMessages, errors: failures,
	}, {
		method: "POST", path: "/v1/messages/count_tokens", id: "countTokens", tag: "models", summary: "Estimate the input tokens of a message request, including the host's tools",
		body: "MessageRequest", status: 200, answer: "TokenCount", serve: a.countTokens, errors: failures,
	}, {
		method: "GET", path: "/v1/models", id: "listModels", tag: "models", summary: "List the models, in a format for clients of OpenAI and Anthropic",
		status: 200, answer: "ModelList", serve: a.listModels,
	}, {
		method: "GET", path: "/v1/models/{id...}", id: "getModel", tag: "models", summary: "Get one model",
		status: 200, answer: "Model", serve: a.showModel, errors: []int{404},
	}}
}

// responseRoutes returns the routes of stored responses.
func (a *API) responseRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/responses/{id}", id: "getResponse", tag: "models", summary: "Get a stored response",
		status: 200, answer: "Response", serve: a.showResponse, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/v1/responses/{id}", id: "deleteResponse", tag: "models", summary: "Delete a stored response; it and the responses that continue it can no longer be continued",
		status: 200, answer: "Deleted", serve: a.deleteResponse, errors: []int{404, 503},
	}, {
		method: "GET", path: "/v1/responses/{id}/input_items", id: "listInputItems", tag: "models", summary: "List the input items of a response",
		query:  []parameter{{"limit", "number of items, 1 to 100 (default 20)"}, {"order", "asc or desc (default desc)"}, {"after", "id of the item after which the list starts"}},
		status: 200, answer: "InputItemList", serve: a.listInput, errors: []int{404, 503},
	}}
}

// toolRoutes returns the routes of tools.
func (a *API) toolRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/tools", id: "listTools", tag: "tools", summary: "List the host's tools",
		query:  []parameter{{"format", "format of the definitions: mcp, openai, anthropic or gemini (default mcp)"}},
		status: 200, answer: "ToolList", serve: a.listTools,
	}, {
		method: "POST", path: "/v1/tools/{name}", id: "callTool", tag: "tools", summary: "Call a tool. If the tool reports an error, isError is true; if the call needs approval, the status is 202",
		body: "ToolCall", status: 200, answer: "ToolResult", serve: a.callTool, errors: []int{403, 404, 429, 500, 503, 504},
	}}
}

// sessionRoutes returns the routes of sessions.
func (a *API) sessionRoutes() []route {
	return []route{{
		method: "POST", path: "/v1/sessions", id: "createSession", tag: "sessions", summary: "Create a session: a stored conversation",
		body: "SessionChange", status: 201, answer: "Session", serve: a.createSession, errors: []int{503},
	}, {
		method: "GET", path: "/v1/sessions", id: "listSessions", tag: "sessions", summary: "List the sessions, the last used first",
		status: 200, answer: "SessionList", serve: a.listSessions, errors: []int{503},
	}, {
		method: "GET", path: "/v1/sessions/{id}", id: "getSession", tag: "sessions", summary: "Get one session",
		status: 200, answer: "Session", serve: a.showSession, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}", id: "renameSession", tag: "sessions", summary: "Rename a session, or set its model",
		body: "SessionChange", status: 200, answer: "Session", serve: a.renameSession, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/v1/sessions/{id}", id: "deleteSession", tag: "sessions", summary: "Delete a session",
		status: 200, answer: "Deleted", serve: a.deleteSession, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}/fork", id: "forkSession", tag: "sessions", summary: "Create a session from the first messages of another, or from all",
		body: "SessionFork", status: 201, answer: "Session", serve: a.forkSession, errors: []int{404, 503},
	}, {
		method: "GET", path: "/v1/sessions/{id}/messages", id: "listMessages", tag: "sessions", summary: "List the messages of a session in OpenAI's format, including the host's tool calls and results",
		status: 200, answer: "MessageList", serve: a.listMessages, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/sessions/{id}/messages", id: "addMessages", tag: "sessions", summary: "Add messages in OpenAI's format without a model request; each tool call must have its result",
		body: "MessageAddition", status: 200, answer: "Session", serve: a.addMessages, errors: []int{404, 503},
	}}
}

// artifactRoutes returns the routes of artifacts.
func (a *API) artifactRoutes() []route {
	return []route{{
		method: "POST", path: "/artifact", id: "createArtifact", tag: "artifacts", summary: "Store a file of up to 50 MiB, with its type and name",
		query: []parameter{{"name", "file name; can also be given in Content-Disposition"}}, body: anyBytes, status: 201, answer: "Artifact", serve: a.createArtifact, errors: []int{503, 507},
	}, {
		method: "GET", path: "/artifact", id: "listArtifacts", tag: "artifacts", summary: "List the stored files",
		status: 200, answer: "ArtifactList", serve: a.listArtifacts, errors: []int{503},
	}, {
		method: "GET", path: "/artifact/{id}", id: "getArtifact", tag: "artifacts", summary: "Download a file, always as an attachment, so that a browser does not execute it",
		status: 200, answer: anyBytes, serve: a.showArtifact, errors: []int{404, 503},
	}, {
		method: "DELETE", path: "/artifact/{id}", id: "deleteArtifact", tag: "artifacts", summary: "Delete a file",
		status: 200, answer: "Deleted", serve: a.deleteArtifact, errors: []int{404, 503},
	}}
}

// approvalRoutes returns the routes of approvals.
func (a *API) approvalRoutes() []route {
	return []route{{
		method: "GET", path: "/v1/approvals", id: "listApprovals", tag: "approvals", summary: "List the pending calls",
		query: []parameter{{"state", "all: also requests decided or expired in the last day"}}, status: 200, answer: "ApprovalList", serve: a.listApprovals, errors: []int{503},
	}, {
		method: "GET", path: "/v1/approvals/{id}", id: "getApproval", tag: "approvals", summary: "Get one approval request",
		query: []parameter{{"wait", "maximum time to wait for the decision, such as 30s"}}, status: 200, answer: "Approval", serve: a.showApproval, errors: []int{404, 503},
	}, {
		method: "POST", path: "/v1/approvals/{id}", id: "decide", tag: "approvals", summary: "Approve or deny a pending call",
		body: "Decision", status: 200, answer: "Approval", serve: a.decideApproval, errors: []int{403, 404, 409, 503},
	}, {
		method: "POST", path: "/v1/callback/{id}/{token}", id: "redeem", tag: "approvals", summary: "Approve or deny a pending call with its one-time token instead of the host's token",
		body: "Decision", status: 200, answer: "Approval", open: true, serve: a.redeemApproval, errors: []int{403, 404, 409, 503},
	}}
}
