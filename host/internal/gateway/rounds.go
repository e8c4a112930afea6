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

// job is a request of a modern client's being carried out. When a legacy
// server asks something, the client is answered that input is required; the
// job waits, parked, until the client's next request brings the answers.
type job struct {
	id      string
	client  string
	binding []byte
	cancel  context.CancelCauseFunc
	asked   chan *question
	done    chan struct{} // closed when result and err are set
	result  json.RawMessage
	err     error

	mu   sync.Mutex
	x    exchange             // of the request that waits for it; nil while parked
	open map[string]*question // that the client has been told of
	last int
}

// question is one of a server's that waits for the client's answer.
type question struct {
	method string
	params json.RawMessage
	answer chan json.RawMessage // holds one
	over   bool                 // the server has taken it back; under the job's mu
}

// rounds carries a request out in as many rounds as it takes.
func (g *Gateway) rounds(ctx context.Context, x exchange, f front, caller call.Caller, do work) (json.RawMessage, error) {
	binding := f.binding(x.principal())
	var j *job
	if f.state != nil {
		state, err := g.seal.open(f.state, binding, time.Now())
		if err != nil {
			return nil, invalidParams(err)
		}
		if state.Job == "" {
			if f.params, err = jsonrpc.SetMember(f.params, "requestState", state.State); err != nil {
				return nil, invalidParams(err)
			}
		} else if j = g.parked.take(state.Job); j == nil {
			return nil, invalidParams(errState) // answered already, or given up
		} else if err := j.resume(x, f.responses); err != nil {
			g.parked.put(j)
			return nil, invalidParams(err)
		}
	}
	if j == nil {
		j = g.start(ctx, x, f.params, binding, caller, do)
	}
	return g.await(ctx, j)
}

func invalidParams(err error) error {
	object := jsonrpc.AppendString([]byte(`{"code":-32602,"message":`), "invalid params: "+err.Error())
	return clientError(append(object, '}'))
}

// start begins a job. It outlives the request, which may end with a question.
func (g *Gateway) start(ctx context.Context, x exchange, params json.RawMessage, binding []byte, caller call.Caller, do work) *job {
	j := &job{
		id: rand.Text(), client: x.identity(), binding: binding, x: x,
		asked: make(chan *question), done: make(chan struct{}), open: map[string]*question{},
	}
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	bounded, release := x.bound(life)
	j.cancel = cancel
	g.owned.run(cancel, func() {
		defer close(j.done)
		defer release()
		defer cancel(nil)
		ask := g.parked.asking.bounded(caller.ID, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if err := declared(caller.Capabilities, method, params); err != nil {
				return nil, err
			}
			return j.ask(ctx, method, params)
		})
		j.result, j.err = do(bounded, params, admitting(caller, j.notify), ask)
	})
	return j
}

func (j *job) notify(method string, params json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.x != nil {
		j.x.notify(method, params)
	}
}

func (j *job) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	q := &question{method: method, params: params, answer: make(chan json.RawMessage, 1)}
	select {
	case j.asked <- q:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-ctx.Done():
		j.mu.Lock()
		defer j.mu.Unlock()
		q.over = true
		return nil, ctx.Err()
	}
}

// resume gives a parked job the answers, and the request that waits for it.
func (j *job) resume(x exchange, responses json.RawMessage) error {
	var members []jsonrpc.Member
	if len(responses) > 0 && string(responses) != "null" {
		var err error
		if members, err = jsonrpc.Members(responses); err != nil {
			return errors.New("inputResponses must be an object")
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.x = x
	for _, m := range members {
		if q := j.open[m.Name]; q != nil {
			delete(j.open, m.Name)
			q.answer <- m.Value
		}
	}
	return nil
}

// await waits for a job's result or its next question. When ctx ends first,
// the client has withdrawn the request.
func (g *Gateway) await(ctx context.Context, j *job) (json.RawMessage, error) {
	for {
		select {
		case <-j.done: // also when the server did not wait for what it asked
			return g.sealed(j)
		default:
		}
		if j.unanswered() {
			return g.park(j)
		}
		select {
		case q := <-j.asked:
			j.mu.Lock()
			j.last++
			j.open["q"+strconv.Itoa(j.last)] = q
			j.mu.Unlock()
		case <-j.done:
			return g.sealed(j)
		case <-ctx.Done():
			j.cancel(context.Cause(ctx))
			<-j.done
			return j.result, j.err
		}
	}
}

// unanswered reports whether the client is to be asked. What the server has taken
// back it is not.
func (j *job) unanswered() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.open, func(_ string, q *question) bool { return q.over })
	return len(j.open) > 0
}

// park answers with the questions and keeps the job for the next round.
func (g *Gateway) park(j *job) (json.RawMessage, error) {
	j.mu.Lock()
	j.x = nil
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for n := 1; n <= j.last; n++ {
		key := "q" + strconv.Itoa(n)
		q := j.open[key]
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
	state, err := g.seal.close(roundState{Expires: time.Now().Add(parkLife).Unix(), Job: j.id}, j.binding)
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

// sealed is a job's result, in which a modern server's own state is sealed.
func (g *Gateway) sealed(j *job) (json.RawMessage, error) {
	if j.err != nil || !asks(j.result) {
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
		state, err := g.seal.close(roundState{Expires: time.Now().Add(stateLife).Unix(), State: m.Value}, j.binding)
		if err != nil {
			return nil, err
		}
		return jsonrpc.SetMember(j.result, "requestState", jsonrpc.AppendString(nil, state))
	}
	return j.result, nil
}

// maxParked bounds the jobs that wait for answers.
const maxParked = 1000

var errUnanswered = errors.New("the client did not answer the server's question in time")

// parkedJobs are the jobs that wait for answers.
type parkedJobs struct {
	asking asking // counts all questions, also those of legacy clients

	mu   sync.Mutex
	jobs map[string]*job
	ends map[string]*time.Timer
}

// put keeps a job for a time, and reports false when there are too many.
func (p *parkedJobs) put(j *job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.jobs) >= maxParked {
		return false
	}
	if p.jobs == nil {
		p.jobs, p.ends = map[string]*job{}, map[string]*time.Timer{}
	}
	p.jobs[j.id] = j
	p.ends[j.id] = time.AfterFunc(parkLife, func() {
		if p.take(j.id) != nil {
			j.cancel(errUnanswered)
		}
	})
	return true
}

// take returns a job to the one who asks first; nil: it is not there.
func (p *parkedJobs) take(id string) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.jobs[id]
	if j != nil {
		p.ends[id].Stop()
		delete(p.jobs, id)
		delete(p.ends, id)
	}
	return j
}

// stop forgets all jobs, which the end of the gateway cancels.
func (p *parkedJobs) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		end.Stop()
	}
	p.jobs, p.ends = nil, nil
}

// endOf gives up the jobs of a client that is gone.
func (p *parkedJobs) endOf(client string) {
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
