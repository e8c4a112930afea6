package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// job is a running request of a modern client. If a legacy server asks something, the
// client gets a result with input_required, and the job is parked until the client's
// next request brings the answers.
type job struct {
	id           string
	client       string
	binding      []byte
	cancel       context.CancelCauseFunc
	newQuestions chan *question
	done         chan struct{} // closed when result and err are set
	result       json.RawMessage
	err          error

	mu           sync.Mutex
	x            exchange             // the request that waits for the job; nil while parked
	questions    map[string]*question // questions that the client has received
	lastQuestion int
}

// question is a server's request that waits for the client's answer.
type question struct {
	method    string
	params    json.RawMessage
	answer    chan json.RawMessage // has room for one answer
	withdrawn bool                 // the server has cancelled the question; guarded by the job's mu
}

// runInRounds runs a request with as many rounds of questions and answers as it needs: it
// starts a job, or resumes the one of the request's state, and returns its result, or its
// next questions as input_required. For an unknown state or malformed answers it returns an
// error with the code for invalid params.
func (g *Gateway) runInRounds(ctx context.Context, x exchange, f requestParams, caller call.Caller, perform requestFunc) (json.RawMessage, error) {
	binding := f.sealBinding(x.principal())
	var j *job
	if f.state != nil {
		state, err := g.sealer.open(f.state, binding, time.Now())
		if err != nil {
			return nil, invalidParams(err)
		}
		if state.Job == "" {
			if f.params, err = jsonrpc.SetMember(f.params, "requestState", state.State); err != nil {
				return nil, invalidParams(err)
			}
		} else {
			answers, err := parseResponses(f.responses)
			if err != nil {
				return nil, invalidParams(err) // the job stays parked
			}
			if j = g.parked.take(state.Job); j == nil {
				return nil, invalidParams(errState) // already answered, or expired
			}
			j.resume(x, answers)
		}
	}
	if j == nil {
		j = g.startJob(ctx, x, f.params, binding, caller, perform)
	}
	return g.awaitJob(ctx, j)
}

// invalidParams returns an *call.MCPError with the code for invalid params, so that the
// request is answered with a JSON-RPC error instead of a tool result.
func invalidParams(err error) error {
	object := jsonrpc.AppendString([]byte(`{"code":-32602,"message":`), "invalid params: "+err.Error())
	return clientError(append(object, '}'))
}

// startJob runs perform in a job in the background. The job can outlive the request, which
// may end with a question; it ends with the server or by its cancel function.
func (g *Gateway) startJob(ctx context.Context, x exchange, params json.RawMessage, binding []byte, caller call.Caller, perform requestFunc) *job {
	j := &job{
		id: rand.Text(), client: x.identity(), binding: binding, x: x,
		newQuestions: make(chan *question), done: make(chan struct{}), questions: map[string]*question{},
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	bounded, release := x.endWithServer(life)
	j.cancel = cancel
	g.background.runTracked(cancel, func() {
		defer close(j.done)
		defer release()
		defer cancel(nil)
		ask := g.parked.limit.wrapAsk(caller.ID, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if err := checkDeclared(caller.Capabilities, method, params); err != nil {
				return nil, err
			}
			return j.ask(ctx, method, params)
		})
		j.result, j.err = perform(bounded, params, filterLogs(caller, j.notify), ask)
	})
	return j
}

// notify passes a notification of the call to the request that waits for the job. While
// the job is parked it is lost.
func (j *job) notify(method string, params json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.x != nil {
		j.x.notify(method, params)
	}
}

// ask hands a question to the client's current request and waits for the answer, which
// comes with a later request. If ctx ends before, it withdraws the question and returns the
// error of ctx.
func (j *job) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q := &question{method: method, params: params, answer: make(chan json.RawMessage, 1)}
	select {
	case j.newQuestions <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		j.mu.Lock()
		defer j.mu.Unlock()
		q.withdrawn = true
		return nil, ctx.Err()
	}
}

// parseResponses returns the members of inputResponses, which may be missing or null. It
// returns an error if it is no object.
func parseResponses(responses json.RawMessage) ([]jsonrpc.Member, error) {
	if len(responses) == 0 || string(responses) == "null" {
		return nil, nil
	}
	members, err := jsonrpc.Members(responses)
	if err != nil {
		return nil, errors.New("inputResponses must be an object")
	}
	return members, nil
}

// resume gives a parked job the answers, and the new request that waits for it.
func (j *job) resume(x exchange, answers []jsonrpc.Member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.x = x
	for _, m := range answers {
		if q := j.questions[m.Name]; q != nil {
			delete(j.questions, m.Name)
			q.answer <- m.Value
		}
	}
}

// awaitJob waits for a job's result, or for its next question, which it answers as
// input_required. If ctx ends first, the client has cancelled the request, and so the job
// is cancelled.
func (g *Gateway) awaitJob(ctx context.Context, j *job) (json.RawMessage, error) {
	for {
		select {
		case <-j.done: // also if the server did not wait for an answer
			return g.sealResult(j)
		default:
		}
		if j.hasOpenQuestion() {
			return g.parkJob(j)
		}
		select {
		case q := <-j.newQuestions:
			j.mu.Lock()
			j.lastQuestion++
			j.questions["q"+strconv.Itoa(j.lastQuestion)] = q
			j.mu.Unlock()
		case <-j.done:
			return g.sealResult(j)
		case <-ctx.Done():
			j.cancel(context.Cause(ctx))
			<-j.done
			return j.result, j.err
		}
	}
}

// hasOpenQuestion reports whether the job has a question that the server has not
// cancelled.
func (j *job) hasOpenQuestion() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.questions, func(_ string, q *question) bool { return q.withdrawn })
	return len(j.questions) > 0
}

// parkJob stores the job for the next round, and returns the result with input_required
// that contains its questions. If too many jobs are parked, it cancels the job and returns
// an error.
func (g *Gateway) parkJob(j *job) (json.RawMessage, error) {
	j.mu.Lock()
	j.x = nil
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for n := 1; n <= j.lastQuestion; n++ {
		key := "q" + strconv.Itoa(n)
		q := j.questions[key]
		if q == nil {
			continue
		}
		if out[len(out)-1] == '}' {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, key), `:{"method":`...)
		out = jsonrpc.AppendString(out, q.method)
		if q.params != nil {
			out = append(append(out, `,"params":`...), q.params...)
		}
		out = append(out, '}')
	}
	j.mu.Unlock()
	state, err := g.sealer.seal(roundState{Expires: time.Now().Add(parkLifetime).Unix(), Job: j.id}, j.binding)
	if err == nil && !g.parked.put(j) {
		err = toolerr.New(toolerr.LimitReached, "too many requests wait for answers; try again later")
	}
	if err != nil {
		j.cancel(err)
		<-j.done
		return nil, err
	}
	out = jsonrpc.AppendString(append(out, `},"requestState":`...), state)
	return append(out, '}'), nil
}

// sealResult returns the result or error of a finished job. If a modern server requests
// input in it, the requestState is encrypted.
func (g *Gateway) sealResult(j *job) (json.RawMessage, error) {
	if j.err != nil || !requiresInput(j.result) {
		return j.result, j.err
	}
	members, err := jsonrpc.Members(j.result)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Name != "requestState" {
			continue
		}
		state, err := g.sealer.seal(roundState{Expires: time.Now().Add(stateLifetime).Unix(), State: m.Value}, j.binding)
		if err != nil {
			return nil, err
		}
		return jsonrpc.SetMember(j.result, "requestState", jsonrpc.AppendString(nil, state))
	}
	return j.result, nil
}

// maxParked bounds the parked jobs.
const maxParked = 1000

// errUnanswered is the cancellation cause of a parked job.
var errUnanswered = errors.New("the client did not answer the server's question in time")

// parkedJobs holds the jobs that wait for answers.
type parkedJobs struct {
	limit questionLimit // counts all questions, including those to legacy clients

	mu     sync.Mutex
	jobs   map[string]*job
	timers map[string]*time.Timer
}

// put stores a job for parkLifetime, after which it is cancelled. It returns false if
// maxParked jobs are stored.
func (p *parkedJobs) put(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.jobs) >= maxParked {
		return false
	}
	if p.jobs == nil {
		p.jobs, p.timers = map[string]*job{}, map[string]*time.Timer{}
	}
	p.jobs[j.id] = j
	p.timers[j.id] = time.AfterFunc(parkLifetime, func() {
		if p.take(j.id) != nil {
			j.cancel(errUnanswered)
		}
	})
	return true
}

// take removes a parked job and returns it; nil if none exists with the id.
func (p *parkedJobs) take(id string) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[id]
	if j != nil {
		p.timers[id].Stop()
		delete(p.jobs, id)
		delete(p.timers, id)
	}
	return j
}

// stop removes all jobs without cancelling them; the end of the gateway's context does
// that.
func (p *parkedJobs) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.timers {
		end.Stop()
	}
	p.jobs, p.timers = nil, nil
}

// endJobsOf ends the parked jobs of a client that has disconnected.
func (p *parkedJobs) endJobsOf(client string) {
	p.mu.Lock()
	var ended []string
	for id, j := range p.jobs {
		if j.client == client {
			ended = append(ended, id)
		}
	}
	p.mu.Unlock()
	for _, id := range ended {
		if j := p.take(id); j != nil {
			j.cancel(errUnanswered)
			<-j.done
		}
	}
}
