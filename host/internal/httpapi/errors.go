package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// An apiError is an error in the form for clients.
type apiError struct {
	status  int
	code    string
	param   string // the wrong member; "": none
	message string
	retry   time.Duration // time until the next attempt; 0: not given
	final   bool          // another attempt does not help, whatever the status suggests
}

func (f *apiError) Error() string { return f.message }

// kind returns OpenAI's type of the error.
func (f *apiError) kind() string {
	switch {
	case f.status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case f.status == http.StatusUnauthorized:
		return "authentication_error"
	case f.status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// kindForAnthropic returns Anthropic's type of the error.
func (f *apiError) kindForAnthropic() string {
	switch f.status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	}
	if f.status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// body returns the error in OpenAI's format.
func (f *apiError) body() map[string]any {
	var param any
	if f.param != "" {
		param = f.param
	}
	return map[string]any{"error": map[string]any{"message": f.message, "type": f.kind(), "param": param, "code": f.code}}
}

// bodyForAnthropic returns the error in Anthropic's format.
func (f *apiError) bodyForAnthropic() map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": f.kindForAnthropic(), "message": f.message, "param": f.param, "code": f.code}}
}

// invalid returns INVALID_PARAMS for the member param of a request.
func invalid(param, format string, args ...any) error {
	return toolerr.New(toolerr.InvalidParams, format, args...).With("param", param)
}

// tooMany returns the error with status 429 and the time after which a client may try
// again.
func tooMany(wait time.Duration) error {
	return &apiError{
		status: http.StatusTooManyRequests, code: string(toolerr.RateLimited), retry: wait,
		message: "too many requests; try again in " + strconv.Itoa(int(math.Ceil(wait.Seconds()))) + " s",
	}
}

// apiErrorOf converts an error for the client: the status and code follow from its toolerr code.
// It returns an apiError unchanged.
func apiErrorOf(err error) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	code := toolerr.CodeOf(err)
	f := &apiError{status: statusOf(code), code: string(code), message: err.Error()}
	var said *toolerr.Error
	if errors.As(err, &said) {
		extra := said.Extra()
		f.param, _ = extra["param"].(string)
		switch ms := extra["retryAfterMs"].(type) {
		case int64:
			f.retry = time.Duration(ms) * time.Millisecond
		case int:
			f.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return f
}

// statusOf returns the HTTP status for a code; 500 for unexpected errors.
func statusOf(code toolerr.Code) int {
	switch code {
	case toolerr.InvalidParams, toolerr.InvalidInput, toolerr.MissingParameter, toolerr.BadEncoding, toolerr.NotUnique:
		return http.StatusBadRequest
	case toolerr.NotFound, toolerr.ToolNotFound, toolerr.NoModel:
		return http.StatusNotFound
	case toolerr.Conflict, toolerr.Exists:
		return http.StatusConflict
	case toolerr.TooLarge:
		return http.StatusRequestEntityTooLarge
	case toolerr.AuthFailed:
		return http.StatusUnauthorized
	case toolerr.PolicyDenied, toolerr.PermissionDenied, toolerr.DeniedPath:
		return http.StatusForbidden
	case toolerr.RateLimited:
		return http.StatusTooManyRequests
	case toolerr.LimitReached:
		return http.StatusBadRequest
	case toolerr.Timeout:
		return http.StatusGatewayTimeout
	case toolerr.Cancelled, toolerr.Locked, toolerr.TransportError, toolerr.ServerOffline, toolerr.NoSpace:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// modelError converts an error of a model. If the vendor has an error code that
// programs check, it uses that.
func modelError(err error) *apiError {
	f := *apiErrorOf(err)
	switch code := toolerr.CodeOf(err); code {
	case toolerr.AuthFailed: // the host's key was refused, not the client's
		f.status, f.final = http.StatusInternalServerError, true
	case toolerr.LimitReached:
		f.code, f.param = "context_length_exceeded", "messages"
	case toolerr.NoModel:
		f.code, f.param = "model_not_found", "model"
	case toolerr.RateLimited:
		f.code = "rate_limit_exceeded"
	case toolerr.Cancelled:
		if errors.Is(err, context.Canceled) {
			f.message = "the completion was cancelled; the host is stopping"
		}
	}
	return &f
}

// forAnthropic reports whether a request comes from a client of Anthropic's API, by its path or
// its header Anthropic-Version.
func forAnthropic(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/messages") || r.Header.Get("Anthropic-Version") != ""
}

// writeError answers with an error, in the format of the request's client.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	f := apiErrorOf(err)
	body := f.body()
	if forAnthropic(r) {
		body = f.bodyForAnthropic()
	}
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retry.Seconds()))))
	}
	if f.final {
		w.Header().Set("X-Should-Retry", "false")
	}
	gateway.AnswerAndDrain(w, r, func() { writeAnswer(w, f.status, body) })
}

// writeAnswer sends a status and v as JSON; 500 if v cannot be encoded.
func writeAnswer(w http.ResponseWriter, status int, v any) {
	body, err := jsonrpc.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"internal error","type":"server_error","param":null,"code":"INTERNAL"}}`)
	}
	writeJSON(w, status, body)
}

// truncate returns the first most bytes of a text, with "…" if it is longer.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
