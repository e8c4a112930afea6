package toolerr

// Code is a stable error code, sent as _meta["toolroom/code"].
type Code string

// The codes. Their spelling is part of the public interface, since clients may
// depend on them: codes are added but never renamed.
const (
	InvalidInput       Code = "INVALID_INPUT"
	MissingParameter   Code = "MISSING_PARAMETER"
	InvalidParams      Code = "INVALID_PARAMS"
	NoRoot             Code = "NO_ROOT"
	RootRefused        Code = "ROOT_REFUSED"
	OutsideRoot        Code = "OUTSIDE_ROOT"
	DeniedPath         Code = "DENIED_PATH"
	NotFound           Code = "NOT_FOUND"
	NotADirectory      Code = "NOT_A_DIRECTORY"
	IsADirectory       Code = "IS_A_DIRECTORY"
	PermissionDenied   Code = "PERMISSION_DENIED"
	SpecialFile        Code = "SPECIAL_FILE"
	BinaryFile         Code = "BINARY_FILE"
	TooLarge           Code = "TOO_LARGE"
	BadPattern         Code = "BAD_PATTERN"
	BadEncoding        Code = "BAD_ENCODING"
	NotUnique          Code = "NOT_UNIQUE"
	NoMatch            Code = "NO_MATCH"
	NoChange           Code = "NO_CHANGE"
	Stale              Code = "STALE"
	NotViewed          Code = "NOT_VIEWED"
	ReadOnly           Code = "READ_ONLY"
	Exists             Code = "EXISTS"
	Conflict           Code = "CONFLICT"
	CommandDenied      Code = "COMMAND_DENIED"
	SandboxUnavailable Code = "SANDBOX_UNAVAILABLE"
	JobNotFound        Code = "JOB_NOT_FOUND"
	Timeout            Code = "TIMEOUT"
	Cancelled          Code = "CANCELLED"
	ToolNotFound       Code = "TOOL_NOT_FOUND"
	ServerOffline      Code = "SERVER_OFFLINE"
	PolicyDenied       Code = "POLICY_DENIED"
	PendingApproval    Code = "PENDING_APPROVAL"
	RateLimited        Code = "RATE_LIMITED"
	LimitReached       Code = "LIMIT_REACHED"
	NoSpace            Code = "NO_SPACE"
	Locked             Code = "LOCKED"
	ProtocolError      Code = "PROTOCOL_ERROR"
	TransportError     Code = "TRANSPORT_ERROR"
	AuthFailed         Code = "AUTH_FAILED"
	ResultInvalid      Code = "RESULT_INVALID"
	NoModel            Code = "NO_MODEL"
	ModelError         Code = "MODEL_ERROR"
	ExecutionError     Code = "EXECUTION_ERROR"
	Internal           Code = "INTERNAL"
)

// Codes returns every code in the order of the documentation.
func Codes() []Code {
	return []Code{
		InvalidInput, MissingParameter, InvalidParams, NoRoot, RootRefused,
		OutsideRoot, DeniedPath, NotFound, NotADirectory, IsADirectory,
		PermissionDenied, SpecialFile, BinaryFile, TooLarge, BadPattern,
		BadEncoding, NotUnique, NoMatch, NoChange, Stale, NotViewed, ReadOnly,
		Exists, Conflict, CommandDenied, SandboxUnavailable, JobNotFound,
		Timeout, Cancelled, ToolNotFound, ServerOffline, PolicyDenied,
		PendingApproval, RateLimited, LimitReached, NoSpace, Locked,
		ProtocolError, TransportError, AuthFailed, ResultInvalid, NoModel,
		ModelError, ExecutionError, Internal,
	}
}
