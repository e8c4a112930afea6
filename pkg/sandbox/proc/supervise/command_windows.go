package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// KillMarked does nothing: the kernel ends the processes of a job with its last handle.
func KillMarked(string) int { return 0 }

// SuperviseWindows starts the program of a spec in a job object, whose processes end with
// the server, and follows it until no process of the job is left. in receives the server's
// messages. The files are its standard input, output and error.
func SuperviseWindows(control io.Writer, in *bufio.Reader, s *Spec, files []*os.File) {
	report := func(r Report) { control.Write(AppendMessage(nil, &r)) }
	c, err := startInJob(s, files)
	if err != nil {
		report(Report{Error: err.Error(), Program: s.Level == Off})
		return
	}
	defer windows.CloseHandle(c.job)
	report(Report{Ready: true})
	report(Report{Started: c.process.Pid})
	followCommand(control, in, s, c)
}

// jobCommand is a command in a job object.
type jobCommand struct {
	job     windows.Handle
	process *os.Process
	over    chan struct{} // closed when the program itself has ended
}

// startInJob starts the program suspended, so that it is in the job before it runs.
func startInJob(s *Spec, files []*os.File) (c *jobCommand, err error) {
	job, err := newJob(s)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			windows.CloseHandle(job)
		}
	}()
	attr := &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW, HideWindow: true, CmdLine: commandLine(s.Argv)}
	if s.Level == Restricted {
		token, err := restrictedToken()
		if err != nil {
			return nil, err
		}
		defer token.Close()
		attr.Token = syscall.Token(token)
	}
	process, err := os.StartProcess(s.Argv[0], s.Argv, &os.ProcAttr{Dir: s.Dir, Env: s.Env, Files: files, Sys: attr})
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", s.Argv[0], s.Dir, err)
	}
	if err := enterJob(job, process.Pid); err != nil {
		process.Kill()
		process.Wait()
		return nil, err
	}
	return &jobCommand{job: job, process: process, over: make(chan struct{})}, nil
}

// commandLine returns the command line for cmd.exe, which does not parse quotes as other
// programs do: with /s it removes the first and the last one. It returns "" for others.
func commandLine(argv []string) string {
	if !strings.EqualFold(filepath.Base(argv[0]), "cmd.exe") || len(argv) < 2 {
		return ""
	}
	last := len(argv) - 1
	return syscall.EscapeArg(argv[0]) + " " + strings.Join(argv[1:last], " ") + ` "` + argv[last] + `"`
}

// enterJob adds a suspended process to a job and lets it run.
func enterJob(job windows.Handle, pid int) error {
	const suspendResume = 0x800 // PROCESS_SUSPEND_RESUME
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|suspendResume, false, uint32(pid))
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	defer windows.CloseHandle(p)
	if err := windows.AssignProcessToJobObject(job, p); err != nil {
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	if status, _, _ := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess").Call(uintptr(p)); status != 0 {
		return os.NewSyscallError("NtResumeProcess", windows.NTStatus(uint32(status)))
	}
	return nil
}

// newJob returns a job object with the limits of a command. All its processes end with its
// last handle, also when the server is killed. A process cannot leave it.
func newJob(s *Spec) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	var l windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	l.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	if n := s.Limits.Processes; n > 0 {
		l.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		l.BasicLimitInformation.ActiveProcessLimit = uint32(min(n, 1<<31))
	}
	if n := s.Limits.Memory; n > 0 {
		l.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_JOB_MEMORY
		l.JobMemoryLimit = uintptr(n)
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&l)), uint32(unsafe.Sizeof(l)))
	if err == nil && s.Level == Restricted {
		ui := uint32(windows.JOB_OBJECT_UILIMIT_HANDLES | windows.JOB_OBJECT_UILIMIT_READCLIPBOARD | windows.JOB_OBJECT_UILIMIT_WRITECLIPBOARD |
			windows.JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | windows.JOB_OBJECT_UILIMIT_DISPLAYSETTINGS | windows.JOB_OBJECT_UILIMIT_GLOBALATOMS |
			windows.JOB_OBJECT_UILIMIT_DESKTOP | windows.JOB_OBJECT_UILIMIT_EXITWINDOWS)
		_, err = windows.SetInformationJobObject(job, windows.JobObjectBasicUIRestrictions, uintptr(unsafe.Pointer(&ui)), uint32(unsafe.Sizeof(ui)))
	}
	if err != nil {
		windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// wait implements command: it waits for the program, and returns its exit code, -1 if
// that is not known.
func (c *jobCommand) wait() Report {
	state, err := c.process.Wait()
	close(c.over)
	r := Report{Exited: true, Status: -1}
	if err == nil {
		r.Status = state.ExitCode()
	}
	return r
}

// pids returns the ids of up to 4096 processes of the job, nil if they cannot be read.
func (c *jobCommand) pids() (pids []int) {
	var list struct {
		assigned, listed uint32
		pids             [4096]uintptr
	}
	err := windows.QueryInformationJobObject(c.job, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	for i := range min(list.listed, uint32(len(list.pids))) {
		pids = append(pids, int(list.pids[i]))
	}
	return pids
}

func (c *jobCommand) countOthers() (others int) {
	for _, pid := range c.pids() {
		if pid != c.process.Pid && !isConsoleHost(pid) {
			others++
		}
	}
	return others
}

// isConsoleHost reports whether a process is the system's host of a console, which ends by
// itself after the programs of the console.
func isConsoleHost(pid int) bool {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(p)
	var name [windows.MAX_LONG_PATH]uint16
	size := uint32(len(name))
	if windows.QueryFullProcessImageName(p, 0, &name[0], &size) != nil {
		return false
	}
	system, err := windows.GetSystemDirectory()
	return err == nil && strings.EqualFold(windows.UTF16ToString(name[:size]), filepath.Join(system, "conhost.exe"))
}

// terminate kills the command, as kill does, with the same result: on Windows a program
// cannot be asked to end from outside.
func (c *jobCommand) terminate() []int { return c.kill() }

func (c *jobCommand) kill() []int {
	pids := c.pids()
	windows.TerminateJobObject(c.job, 1)
	return pids
}

// signal ends all processes, whatever the signal.
func (c *jobCommand) signal(int) { c.kill() }

// restrictedToken returns this process's token without privileges, except to pass through
// directories, without the rights of administrators, and with the integrity of a user's
// ordinary programs.
func restrictedToken() (windows.Token, error) {
	var own windows.Token
	const access = windows.TOKEN_DUPLICATE | windows.TOKEN_ASSIGN_PRIMARY | windows.TOKEN_QUERY | windows.TOKEN_ADJUST_DEFAULT | windows.TOKEN_ADJUST_SESSIONID
	if err := windows.OpenProcessToken(windows.CurrentProcess(), access, &own); err != nil {
		return 0, os.NewSyscallError("OpenProcessToken", err)
	}
	defer own.Close()
	const disableMaxPrivilege, luaToken = 0x1, 0x4
	privileges, err := removablePrivileges(own) // by name as well: Wine 8 ignores the flags
	if err != nil {
		return 0, err
	}
	var token windows.Token
	ok, _, err := windows.NewLazySystemDLL("advapi32.dll").NewProc("CreateRestrictedToken").Call(
		uintptr(own), disableMaxPrivilege|luaToken, 0, 0, uintptr(len(privileges)), uintptr(unsafe.Pointer(unsafe.SliceData(privileges))), 0, 0, uintptr(unsafe.Pointer(&token)))
	if ok == 0 {
		return 0, os.NewSyscallError("CreateRestrictedToken", err)
	}
	if isElevated(own) {
		if err := setMediumIntegrity(token); err != nil {
			token.Close()
			return 0, err
		}
	}
	return token, nil
}

// isElevated reports whether a token has the rights of an administrator.
func isElevated(token windows.Token) bool { return token.IsElevated() }

// setMediumIntegrity gives a token the integrity level of ordinary programs.
func setMediumIntegrity(token windows.Token) error {
	sid, err := windows.CreateWellKnownSid(windows.WinMediumLabelSid)
	if err != nil {
		return os.NewSyscallError("CreateWellKnownSid", err)
	}
	label := windows.Tokenmandatorylabel{Label: windows.SIDAndAttributes{Sid: sid, Attributes: windows.SE_GROUP_INTEGRITY}}
	return os.NewSyscallError("SetTokenInformation", windows.SetTokenInformation(token, windows.TokenIntegrityLevel, (*byte)(unsafe.Pointer(&label)), label.Size()))
}

// privilegesOf returns the privileges of a token.
func privilegesOf(token windows.Token) (all []windows.LUIDAndAttributes, err error) {
	var size uint32
	windows.GetTokenInformation(token, windows.TokenPrivileges, nil, 0, &size)
	if size == 0 {
		return nil, errors.New("the privileges of the process are not known")
	}
	text := make([]byte, size)
	if err := windows.GetTokenInformation(token, windows.TokenPrivileges, &text[0], size, &size); err != nil {
		return nil, os.NewSyscallError("GetTokenInformation", err)
	}
	return slices.Clone((*windows.Tokenprivileges)(unsafe.Pointer(&text[0])).AllPrivileges()), nil
}

// removablePrivileges returns the privileges of a token, except the one that passes through
// directories.
func removablePrivileges(token windows.Token) ([]windows.LUIDAndAttributes, error) {
	all, err := privilegesOf(token)
	if err != nil {
		return nil, err
	}
	var pass windows.LUID
	if err := windows.LookupPrivilegeValue(nil, windows.StringToUTF16Ptr("SeChangeNotifyPrivilege"), &pass); err != nil {
		return nil, os.NewSyscallError("LookupPrivilegeValue", err)
	}
	return slices.DeleteFunc(all, func(p windows.LUIDAndAttributes) bool { return p.Luid == pass }), nil
}

// TokenPrivileges returns the number of privileges of this process, for the self-test.
func TokenPrivileges() (int, error) {
	token, err := windows.OpenCurrentProcessToken()
	if err != nil {
		return 0, err
	}
	defer token.Close()
	all, err := privilegesOf(token)
	return len(all), err
}

// InJob reports whether a process is in a job object, for the self-test.
func InJob(pid int) (bool, error) {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false, os.NewSyscallError("OpenProcess", err)
	}
	defer windows.CloseHandle(p)
	var in int32
	if ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessInJob").Call(uintptr(p), 0, uintptr(unsafe.Pointer(&in))); ok == 0 {
		return false, os.NewSyscallError("IsProcessInJob", err)
	}
	return in != 0, nil
}
