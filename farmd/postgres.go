package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	v12 "go.temporal.io/server/schema/postgresql/v12"
	"go.temporal.io/server/tools/common/schema"
	temporalsql "go.temporal.io/server/tools/sql"

	"vksplat/internal/fault"
)

// postgresVariable is where the URL of Postgres can be, so that no list of processes shows its password.
const postgresVariable = "VKSPLAT_FARM_POSTGRES"

// Databases of Postgres unless the URL names one. Temporal wants a second one for lists of jobs.
const (
	defaultDatabase  = "vksplat_farm"
	visibilityEnding = "_visibility"
)

// serveLock is the number of the lock that a server holds in its database, so that there is one: "vksf".
const serveLock = applicationID

// openPostgres prepares the databases of a URL: makes them where they do not exist, and brings their tables to this
// version of the server.
func openPostgres(ctx context.Context, text string) (*database, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" || u.User == nil {
		return nil, fault.Usagef("as in postgres://USER:PASSWORD@HOST/DATABASE", "this is not the URL of a Postgres")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/" + defaultDatabase
	}
	if u.Port() == "" {
		u.Host += ":5432"
	}
	db := &database{main: postgresConfig(u, ""), visibility: postgresConfig(u, visibilityEnding)}
	if err := preparePostgres(ctx, u, db); err != nil {
		var own *fault.Error
		if errors.As(err, &own) {
			return nil, err
		}
		return nil, &fault.Error{Op: "open database", Path: u.Redacted(), Err: err, Kind: fault.ErrTryAgain,
			Hint: "does Postgres run there, and may the user make databases? Or make them for it: " +
				db.main.DatabaseName + " and " + db.visibility.DatabaseName}
	}
	return db, nil
}

// postgresConfig is how Temporal connects to a database.
func postgresConfig(u *url.URL, ending string) config.SQL {
	password, _ := u.User.Password()
	cfg := config.SQL{PluginName: postgresql.PluginNamePGX, DatabaseName: strings.Trim(u.Path, "/") + ending,
		ConnectAddr: u.Host, ConnectProtocol: "tcp", User: u.User.Username(), Password: password,
		ConnectAttributes: map[string]string{}, MaxConns: 20, MaxIdleConns: 20}
	for key, values := range u.Query() {
		cfg.ConnectAttributes[key] = values[len(values)-1]
	}
	return cfg
}

// preparePostgres brings both databases to this version.
func preparePostgres(ctx context.Context, u *url.URL, db *database) error {
	for _, cfg := range []config.SQL{db.main, db.visibility} {
		if err := makeDatabase(cfg); err != nil {
			return err
		}
	}
	conn, err := lockDatabase(ctx, u)
	if err != nil {
		return err
	}
	db.lock = conn
	var found string
	if _, err := conn.ExecContext(ctx,
		"CREATE TABLE IF NOT EXISTS vksplat_server (version text NOT NULL)"); err != nil {
		return err
	}
	err = conn.QueryRowContext(ctx, "SELECT version FROM vksplat_server").Scan(&found)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	version, err := serverVersion()
	if err != nil {
		return err
	}
	if err := checkStep(found, version); err != nil {
		return err
	}
	if err := errors.Join(
		updateSchema(db.main, "postgresql/v12/temporal", v12.Version, found == ""),
		updateSchema(db.visibility, "postgresql/v12/visibility", v12.VisibilityVersion, found == "")); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "WITH gone AS (DELETE FROM vksplat_server) INSERT INTO vksplat_server VALUES ($1)",
		version.String())
	return err
}

// makeDatabase makes a database that does not exist.
func makeDatabase(cfg config.SQL) error {
	logger := log.NewNoopLogger()
	conn, err := temporalsql.NewConnection(&cfg, logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	if conn.Exec("SELECT 1") == nil {
		return nil
	}
	return temporalsql.DoCreateDatabase(&cfg, "postgres", logger)
}

// lockDatabase takes the lock of the one server that a database may have.
func lockDatabase(ctx context.Context, u *url.URL) (*sql.Conn, error) {
	pool, err := sql.Open("pgx", u.String())
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// Postgres may be about to notice that the last server has ended.
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var got bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", serveLock).Scan(&got); err != nil {
			return nil, err
		}
		switch {
		case got:
			return conn, nil
		case time.Now().After(deadline):
			return nil, &fault.Error{Op: "open database", Path: u.Redacted(),
				Err:  errors.New("another server uses it"),
				Kind: fault.ErrTryAgain}
		}
	}
}

// checkStep refuses to update over more than one minor version, as Temporal advises: some updates change rows while
// the version between runs.
func checkStep(found string, now semver.Version) error {
	if found == "" {
		return nil
	}
	old, err := semver.Parse(found)
	if err != nil {
		return fmt.Errorf("the database has an unreadable version: %w", err)
	}
	if old.Major == now.Major && (old.Minor == now.Minor || old.Minor+1 == now.Minor) {
		return nil
	}
	hint := fmt.Sprintf("first serve it with a vksplat-farmd of Temporal %d.%d, for a minute", old.Major, old.Minor+1)
	if old.GT(now) {
		hint = "use the vksplat-farmd that served it last"
	}
	return &fault.Error{Op: "open database", Err: fmt.Errorf("it is of Temporal %s, this server is %s", old, now),
		Hint: hint, Kind: fault.ErrSetup}
}

// updateSchema makes the tables of a database, or adds what a newer version has.
func updateSchema(cfg config.SQL, name, version string, fresh bool) error {
	logger := log.NewNoopLogger()
	conn, err := temporalsql.NewConnection(&cfg, logger)
	if err != nil {
		return err
	}
	defer conn.Close()
	if fresh {
		if v, err := conn.ReadSchemaVersion(); err == nil && v != "0.0" {
			return &fault.Error{Op: "open database", Path: cfg.DatabaseName, Kind: fault.ErrSetup,
				Err: errors.New("it has tables of a Temporal that is not a farm's"), Hint: "name another database"}
		}
		setup := &schema.SetupConfig{InitialVersion: "0.0"}
		if err := schema.NewSetupSchemaTask(conn, setup, logger).Run(); err != nil {
			return err
		}
	}
	update := &schema.UpdateConfig{DBName: cfg.DatabaseName, TargetVersion: version, SchemaName: name}
	return schema.NewUpdateSchemaTask(conn, update, logger).Run()
}
