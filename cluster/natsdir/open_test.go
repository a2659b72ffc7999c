package natsdir_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/mcppool/mcppool/cluster"
	"github.com/mcppool/mcppool/cluster/natsdir"
)

// refused opens a directory that can't be opened, and returns why.
func refused(t *testing.T, url string, opts *natsdir.Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := natsdir.Open(ctx, url, opts)
	if err == nil {
		_ = d.Close()
	}
	require.Error(t, err)
	return err
}

func TestServerWithoutJetStreamIsNamedSo(t *testing.T) {
	s := startServer(t, &server.Options{})
	require.ErrorIs(t, refused(t, s.ClientURL(), nil), natsdir.ErrNoJetStream)
}

func TestWrongPasswordIsNamedSoAndNotTold(t *testing.T) {
	s := startServer(t, &server.Options{JetStream: true, Username: "pool", Password: "right"})
	err := refused(t, s.ClientURL(), &natsdir.Options{NATS: []nats.Option{nats.UserInfo("pool", "s3cret")}})
	require.ErrorIs(t, err, natsdir.ErrCredentials)
	require.NotContains(t, err.Error(), "s3cret")
	opened(t, s.ClientURL(), &natsdir.Options{NATS: []nats.Option{nats.UserInfo("pool", "right")}})
}

func TestMissingPermissionIsNamedSo(t *testing.T) {
	s := startServer(t, &server.Options{JetStream: true, Users: []*server.User{{
		Username: "pool", Password: "right", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"$JS.API.STREAM.CREATE.>"}},
		},
	}}})
	err := refused(t, s.ClientURL(), &natsdir.Options{
		Timeout: 100 * time.Millisecond,
		NATS:    []nats.Option{nats.UserInfo("pool", "right")},
	})
	require.ErrorIs(t, err, natsdir.ErrPermissions)
	require.ErrorContains(t, err, "$JS.API.STREAM.CREATE.KV_mcppool")
}

func TestBucketOfSomethingElseIsLeftAlone(t *testing.T) {
	s := startServer(t, nil)
	js, err := jetstream.New(conn(t, s.ClientURL()))
	require.NoError(t, err)
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "mcppool"})
	require.NoError(t, err)
	err = refused(t, s.ClientURL(), nil)
	var settings *natsdir.SettingsError
	require.ErrorAs(t, err, &settings)
	require.ErrorContains(t, err, "it was made by something else than mcppool, allow_direct is true, not false")
}

func TestBucketWhoseSettingsWereChangedIsRefused(t *testing.T) {
	s := startServer(t, nil)
	opened(t, s.ClientURL(), nil)
	js, err := jetstream.New(conn(t, s.ClientURL()))
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_mcppool")
	require.NoError(t, err)
	changed := stream.CachedInfo().Config
	changed.AllowDirect, changed.MaxAge = true, time.Hour
	_, err = js.UpdateStream(t.Context(), changed)
	require.NoError(t, err)
	var settings *natsdir.SettingsError
	require.ErrorAs(t, refused(t, s.ClientURL(), nil), &settings)
	require.Equal(t, []string{"allow_direct is true, not false", "max_age is 1h0m0s, not 0s"}, settings.Wrong)
	require.ErrorContains(t, refused(t, s.ClientURL(), &natsdir.Options{Replicas: 3}), "num_replicas is 1, not 3")
}

func TestTooManyReplicasForTheServersIsNamedSo(t *testing.T) {
	s := startServer(t, nil)
	require.ErrorContains(t, refused(t, s.ClientURL(), &natsdir.Options{Replicas: 3}), "Options.Replicas")
}

func TestWrongOptionsAreNamed(t *testing.T) {
	for field, opts := range map[string]natsdir.Options{
		"Options.Bucket":   {Bucket: "a.b"},
		"Options.Replicas": {Replicas: 7},
		"Options.Timeout":  {Timeout: -1},
	} {
		var config *natsdir.ConfigError
		require.ErrorAs(t, refused(t, "nats://127.0.0.1:1", &opts), &config)
		require.Equal(t, field, config.Field)
	}
}

func TestKeysAndValuesThatAreNoneAreRefusedBeforeTheyAreSent(t *testing.T) {
	d := opened(t, startServer(t, nil).ClientURL(), nil)
	for _, key := range []string{"", "a.b", "*", ">", "a b", "ä"} {
		_, err := d.Put(t.Context(), cluster.Owners, key, nil)
		require.ErrorContains(t, err, "a key has", key)
	}
	_, err := d.Put(t.Context(), cluster.Owners, "k", make([]byte, 16<<10+1))
	require.ErrorContains(t, err, "a value has up to 16384 bytes")
}

func TestReplicatedBucketAsksForALongTTL(t *testing.T) {
	require.Zero(t, opened(t, startServer(t, nil).ClientURL(), nil).MinTTL())
}
