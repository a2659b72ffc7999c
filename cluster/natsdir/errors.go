package natsdir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors of [Open] that only a person can mend. Other errors of Open mean that the server
// can't be reached now, and are worth another try.
var (
	// ErrNoJetStream means that the server, or this account of it, has no JetStream.
	ErrNoJetStream = errors.New("natsdir: the NATS server has no JetStream for this account: start it with -js, or with a jetstream block in its configuration, and enable it for the account")
	// ErrCredentials means that the server refused the user.
	ErrCredentials = errors.New("natsdir: the NATS server refused the credentials: see Options.NATS")
	// ErrPermissions means that the user may not do what the directory needs.
	ErrPermissions = errors.New("natsdir: the NATS user lacks permissions: it needs to publish to $JS.API.> and to the bucket's $KV subjects, and to subscribe to _INBOX.>")
)

// SettingsError means that the bucket exists and isn't as it must be. Nothing was changed.
type SettingsError struct {
	Bucket string
	// Wrong are the settings that differ, each as "name is x, not y".
	Wrong []string
}

func (e *SettingsError) Error() string {
	return fmt.Sprintf("natsdir: the stream %s of the bucket %q can't be used: %s; choose another Options.Bucket, or change the stream while no replica runs",
		streamName(e.Bucket), e.Bucket, strings.Join(e.Wrong, ", "))
}

// ConfigError means that a setting of [Open] can't be used.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return "natsdir: " + e.Field + " " + e.Reason }

// explain returns the error for a person that err amounts to, or err.
func explain(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired):
		return fmt.Errorf("%w (%w)", ErrCredentials, err)
	case errors.Is(err, nats.ErrPermissionViolation):
		return fmt.Errorf("%w (%w)", ErrPermissions, err)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return ErrNoJetStream
	case errors.As(err, &api) && api.ErrorCode == errCodeTooManyReplicas:
		return fmt.Errorf("natsdir: Options.Replicas: the NATS cluster is too small: %w", err)
	}
	return err
}

// What the server calls a stream with more replicas than it has nodes to put them on.
const errCodeTooManyReplicas = 10074
