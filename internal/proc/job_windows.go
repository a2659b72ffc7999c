package proc

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32 = syscall.NewLazyDLL("kernel32.dll")
	ntdll    = syscall.NewLazyDLL("ntdll.dll")

	procCreateJobObject           = kernel32.NewProc("CreateJobObjectW")
	procSetInformationJobObject   = kernel32.NewProc("SetInformationJobObject")
	procQueryInformationJobObject = kernel32.NewProc("QueryInformationJobObject")
	procAssignProcessToJobObject  = kernel32.NewProc("AssignProcessToJobObject")
	procTerminateJobObject        = kernel32.NewProc("TerminateJobObject")
)

// job is a job object: a set of processes that every child of a member joins
// and that none can leave. The kernel kills its members when its last handle is
// closed, so also when the host dies.
type job syscall.Handle

// basicLimits is JOBOBJECT_BASIC_LIMIT_INFORMATION.
type basicLimits struct {
	PerProcessUserTimeLimit, PerJobUserTimeLimit int64
	LimitFlags                                   uint32
	MinimumWorkingSetSize, MaximumWorkingSetSize uintptr
	ActiveProcessLimit                           uint32
	Affinity                                     uintptr
	PriorityClass, SchedulingClass               uint32
}

// extendedLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
type extendedLimits struct {
	Basic                                    basicLimits
	IO                                       [6]uint64
	ProcessMemoryLimit, JobMemoryLimit       uintptr
	PeakProcessMemoryUsed, PeakJobMemoryUsed uintptr
}

// basicAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type basicAccounting struct {
	TotalUserTime, TotalKernelTime                     int64
	ThisPeriodTotalUserTime, ThisPeriodTotalKernelTime int64
	TotalPageFaultCount, TotalProcesses                uint32
	ActiveProcesses, TotalTerminatedProcesses          uint32
}

const (
	jobBasicAccounting = 1
	jobExtendedLimits  = 9
	limitKillOnClose   = 0x2000
)

func newJob() (job, error) {
	h, _, err := procCreateJobObject.Call(0, 0)
	if h == 0 {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	limits := extendedLimits{Basic: basicLimits{LimitFlags: limitKillOnClose}}
	ok, _, err := procSetInformationJobObject.Call(h, jobExtendedLimits,
		uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits))
	if ok == 0 {
		syscall.CloseHandle(syscall.Handle(h))
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job(h), nil
}

func (j job) assign(process syscall.Handle) error {
	if ok, _, err := procAssignProcessToJobObject.Call(uintptr(j), uintptr(process)); ok == 0 {
		return os.NewSyscallError("AssignProcessToJobObject", err)
	}
	return nil
}

func (j job) terminate() error {
	if ok, _, err := procTerminateJobObject.Call(uintptr(j), 1); ok == 0 {
		return os.NewSyscallError("TerminateJobObject", err)
	}
	return nil
}

// active returns how many processes of the job are left, 0 if it can't be known.
func (j job) active() int {
	var info basicAccounting
	_, _, _ = procQueryInformationJobObject.Call(uintptr(j), jobBasicAccounting,
		uintptr(unsafe.Pointer(&info)), unsafe.Sizeof(info), 0)
	return int(info.ActiveProcesses)
}

func (j job) close() { syscall.CloseHandle(syscall.Handle(j)) }
