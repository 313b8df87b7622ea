package shop

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

type Gateway struct {
	URL string `json:"url"`
	t   *testing.T
}

// StartGateway runs a gateway until the test has ended.
func StartGateway(t *testing.T, settings ...string) *Gateway {
	t.Helper()
	args := []string{"serve", "--json", "--port", "0", "--store", "memory:"}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	command := exec.Command("sandbox-sim", args...)
	command.Stderr = os.Stderr
	ready, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	gateway := &Gateway{t: t}
	if err := json.NewDecoder(ready).Decode(gateway); err != nil {
		t.Fatal("the gateway did not start: ", err)
	}
	return gateway
}

// Pay sends a request of the gateway's own interface.
func (g *Gateway) Pay(path string, body any, answer any) {
	g.t.Helper()
	g.send("POST", path, body, answer)
}

// Control sends a request of the control API: clock, overrides, faults, callbacks …
func (g *Gateway) Control(method, path string, body any, answer any) {
	g.t.Helper()
	g.send(method, "/_sandbox/"+path, body, answer)
}

func (g *Gateway) send(method, path string, body, answer any) {
	g.t.Helper()
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			g.t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, g.URL+path, &sent)
	if err != nil {
		g.t.Fatal(err)
	}
	request.SetBasicAuth("sandbox_key", "sandbox_secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		g.t.Fatal(err)
	}
}
