-- Every table begins with its tenant, and a policy lets a statement see the rows of one tenant alone: the one its
-- transaction named by SET LOCAL app.tenant. Who named none sees nothing. FORCE binds the owner of the tables too.

-- A number that is never given twice for one name: a file that was made again is another.
create function anima.moment() returns bigint language sql volatile
    as 'select (extract(epoch from clock_timestamp()) * 1000000)::bigint';

create table anima.tenant(
    tenant bigint generated always as identity primary key,
    name text collate "C" not null unique,
    made timestamptz not null default now(),
    suspended timestamptz);

create table anima.home(
    tenant bigint not null,
    home bigint not null,
    agent text collate "C" not null,
    identity text not null,
    key bytea,                          -- sealed; null until it is first needed
    version bigint not null default 0,  -- of the document that changed last
    records bigint not null default 0,  -- of the ledger, and their bytes
    bytes bigint not null default 0,
    anchored bigint not null default 0, -- the last record that a revision knows of
    epoch bigint not null default 0,    -- raised when other files take the place of all
    primary key(tenant, home),
    unique(tenant, agent));

-- A file is its body and then its lines, by their offsets: adding to it writes a line and nothing else anew.
create table anima.file(
    tenant bigint not null,
    home bigint not null,
    key text collate "C" not null,
    path text collate "C" not null,
    was bigint not null,                -- another number when it was made, or written anew
    version bigint not null,            -- of a document, the home's; else its own count
    is_document boolean not null,
    size bigint not null,
    ended boolean not null,             -- whether it is empty or ends with a line end
    mode integer not null,
    time timestamptz not null,
    body bytea not null,
    primary key(tenant, home, key));
create index file_changed on anima.file(tenant, home, version) where is_document;

create table anima.line(
    tenant bigint not null,
    home bigint not null,
    key text collate "C" not null,
    at bigint not null,
    data bytea not null,
    primary key(tenant, home, key, at));

create table anima.gone(
    tenant bigint not null,
    home bigint not null,
    version bigint not null,
    path text collate "C" not null,
    primary key(tenant, home, version, path));

create table anima.record(
    tenant bigint not null,
    home bigint not null,
    at bigint not null,
    n bigint not null,
    line bytea not null,
    primary key(tenant, home, at));

-- Where the chain ended, after each change. The application may add to it and take nothing away.
create table anima.head(
    tenant bigint not null,
    home bigint not null,
    seq bigint not null,
    n bigint not null,                  -- 0 where another chain takes this one's place
    hash text collate "C" not null,
    time timestamptz not null default now(),
    primary key(tenant, home, seq));

create table anima.revision(
    tenant bigint not null,
    home bigint not null,
    n bigint not null,
    id text collate "C" not null,
    person bytea not null,
    message bytea not null,
    primary key(tenant, home, n),
    unique(tenant, home, id));

-- A version of a document: whole, or what stands between `start` bytes that stay and `rest` that stay of the one before.
create table anima.version(
    tenant bigint not null,
    home bigint not null,
    path text collate "C" not null,
    n bigint not null,
    blob text collate "C",              -- null where the document is gone
    start bigint,                       -- null where it is whole
    rest bigint,
    body bytea not null,
    primary key(tenant, home, path, n));
create index version_n on anima.version(tenant, home, n);

create table anima.lease(
    tenant bigint not null,
    home bigint not null,
    name text collate "C" not null,
    holder text not null,
    token bigint not null,
    until timestamptz not null,
    primary key(tenant, home, name));

create table anima.made(
    tenant bigint not null,
    home bigint not null,
    epoch text collate "C" not null,
    made_for text not null,
    generation bigint not null,
    last_part bigint not null,
    last_document bigint not null,
    primary key(tenant, home));

create table anima.document(
    tenant bigint not null,
    home bigint not null,
    id bigint not null,
    path text collate "C" not null,
    digest text not null,
    kind text not null,
    layer text not null,
    day integer not null,
    primary key(tenant, home, id),
    unique(tenant, home, path));

create table anima.part(
    tenant bigint not null,
    home bigint not null,
    id bigint not null,
    document bigint not null,
    packed bytea not null,
    vectors bytea not null,
    said bytea not null,
    primary key(tenant, home, id));
create index part_document on anima.part(tenant, home, document);
alter table anima.part alter column packed set storage external, alter column vectors set storage external;

do $$
declare each text;
begin
    foreach each in array array['home', 'file', 'line', 'gone', 'record', 'head', 'revision', 'version', 'lease', 'made',
                                'document', 'part'] loop
        execute format('alter table anima.%I enable row level security', each);
        execute format('alter table anima.%I force row level security', each);
        execute format('create policy own on anima.%I using '
            '(tenant = nullif(current_setting(''app.tenant'', true), '''')::bigint)', each);
        execute format('grant select, insert, update, delete on anima.%I to anima_app', each);
    end loop;
end $$;
revoke update, delete on anima.head from anima_app;
alter table anima.tenant enable row level security;

-- A tenant's number is asked for before it is known whose rows may be seen.
create function anima.tenant_called(asked text) returns table(tenant bigint, is_suspended boolean)
    language sql stable security definer set search_path = anima, pg_temp
    as 'select tenant, suspended is not null from anima.tenant where name = asked';
revoke all on function anima.tenant_called from public;
grant execute on function anima.tenant_called to anima_app;
grant execute on function anima.moment to anima_app;
grant usage on schema anima to anima_app;
grant select on anima.migration to anima_app;
