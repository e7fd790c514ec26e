// Six handlers on xxl-job-executor-go: executor ADMIN TOKEN APPNAME PORT FOLDER.
//
// The library keeps no logs; it asks the program for them, and this one keeps them in memory.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	xxl "github.com/xxl-job/xxl-job-executor-go"
)

var (
	mutex sync.Mutex
	logs  = map[int64][]string{}
	ended = map[int64]bool{}
)

func write(request *xxl.RunReq, format string, values ...interface{}) {
	mutex.Lock()
	defer mutex.Unlock()
	logs[request.LogID] = append(logs[request.LogID], fmt.Sprintf(format, values...))
}

func read(request *xxl.LogReq) *xxl.LogRes {
	mutex.Lock()
	defer mutex.Unlock()
	lines := logs[request.LogID]
	from := request.FromLineNum - 1
	if from > len(lines) {
		from = len(lines)
	}
	return &xxl.LogRes{Code: xxl.SuccessCode, Content: xxl.LogResContent{
		FromLineNum: request.FromLineNum,
		ToLineNum:   len(lines),
		LogContent:  strings.Join(lines[from:], "\n"),
		IsEnd:       ended[request.LogID],
	}}
}

func ok(_ context.Context, request *xxl.RunReq) string {
	write(request, "hello %s", request.ExecutorParams)
	return "done"
}

func fail(_ context.Context, request *xxl.RunReq) string {
	write(request, "about to fail")
	panic("told to fail")
}

func sleep(stopped context.Context, request *xxl.RunReq) string {
	write(request, "asleep for %s s", request.ExecutorParams)
	seconds, _ := strconv.ParseFloat(request.ExecutorParams, 64)
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		return "slept"
	case <-stopped.Done(): // killed or out of time; only a panic is a failure to the library
		panic("stopped: " + stopped.Err().Error())
	}
}

func shard(_ context.Context, request *xxl.RunReq) string {
	text := fmt.Sprintf("shard %d of %d", request.BroadcastIndex, request.BroadcastTotal)
	write(request, text)
	return text
}

func lines(_ context.Context, request *xxl.RunReq) string {
	for number := 1; number <= 200; number++ {
		write(request, "line %d of 200", number)
	}
	return "done"
}

func echo(_ context.Context, request *xxl.RunReq) string {
	return request.ExecutorParams
}

func noteEnd(task xxl.TaskFunc) xxl.TaskFunc {
	return func(stopped context.Context, request *xxl.RunReq) string {
		defer func() {
			mutex.Lock()
			defer mutex.Unlock()
			ended[request.LogID] = true
		}()
		return task(stopped, request)
	}
}

func main() {
	executor := xxl.NewExecutor(
		xxl.ServerAddr(os.Args[1]),
		xxl.AccessToken(os.Args[2]),
		xxl.RegistryKey(os.Args[3]),
		xxl.ExecutorIp("127.0.0.1"),
		xxl.ExecutorPort(os.Args[4]),
	)
	executor.Init()
	executor.Use(noteEnd)
	executor.LogHandler(read)
	for name, task := range map[string]xxl.TaskFunc{"ok": ok, "fail": fail, "sleep": sleep, "shard": shard, "lines": lines, "echo": echo} {
		executor.RegTask(name, task)
	}
	log.Fatal(executor.Run())
}
