-- The statements of homes in a database, each beneath its name, in PostgreSQL's words. `[own]` stands for the home's own rows
-- and `[content]` for a file's bytes; SQLite gets them in its own words. Those that fit into a line stand where they are used.

-- home_made: a home of a tenant's agent, where there is none
insert into anima.home(tenant, home, agent, identity)
select %(tenant)s, coalesce(max(home), 0) + 1, %(agent)s, %(identity)s from anima.home where tenant = %(tenant)s
on conflict do nothing

-- home_locked: the home's row, once nobody else has it
select version, records, bytes, anchored, epoch from anima.home where [own] for update

-- file: a file's row without its bytes
select path, size, mode, time, was || '.' || version from anima.file where [own] and key = %(key)s

-- file_whole: a file's row and its bytes, or none of them where there are more than so many
select path, size, mode, time, was || '.' || version, case when size <= %(most)s then [content] else '' end
from anima.file where [own] and key = %(key)s

-- file_range: the body and the lines that hold a range of a file's bytes
select 0, 0, substr(body, %(start)s::int + 1, %(span)s::int) from anima.file where [own] and key = %(key)s
union all select 1, at, data from anima.line where [own] and key = %(key)s and at < %(end)s
    and at >= coalesce((select max(at) from anima.line where [own] and key = %(key)s and at <= %(start)s), 0)
order by 1, 2

-- file_locked: how a log stands, once no other writer can come in between
select size, was, ended from anima.file where [own] and key = %(key)s for update

-- files_beneath: every file beneath a folder
select path, size, mode, time, was || '.' || version from anima.file
where [own] and key >= %(low)s and (%(high)s::text is null or key < %(high)s) order by path limit %(limit)s

-- file_new: a whole file where none is
insert into anima.file values(%(tenant)s, %(home)s, %(key)s, %(path)s, anima.moment(), %(version)s,
    %(is_document)s, %(size)s, %(ended)s, %(mode)s, coalesce(%(time)s, clock_timestamp()), %(body)s)
on conflict(tenant, home, key) do nothing

-- file_put: a whole file, whatever stood there
insert into anima.file values(%(tenant)s, %(home)s, %(key)s, %(path)s, anima.moment(), %(version)s,
    %(is_document)s, %(size)s, %(ended)s, %(mode)s, coalesce(%(time)s, clock_timestamp()), %(body)s)
on conflict(tenant, home, key) do update set path = excluded.path, was = excluded.was,
    version = case when excluded.is_document then excluded.version else file.version + 1 end,
    is_document = excluded.is_document, size = excluded.size, ended = excluded.ended, mode = excluded.mode,
    time = excluded.time, body = excluded.body

-- file_grown: what becomes of a file's row when a line is added
update anima.file set size = %(size)s, version = coalesce(%(version)s, version + 1), ended = %(ended)s,
    time = clock_timestamp() where [own] and key = %(key)s

-- line_new
insert into anima.line values(%(tenant)s, %(home)s, %(key)s, %(at)s, %(data)s)

-- line_there: whether a line was added
select 1 from anima.line where [own] and key = %(key)s and at = %(at)s and data = %(data)s

-- log_state
select was, size, version, time from anima.file where [own] and key = %(key)s

-- quotas: of what a tenant may keep, and how much of it there is
select kind, most, anima.used(kind) from anima.quota where tenant = %(tenant)s and kind in ('bytes', 'documents')

-- record_new
insert into anima.record values(%(tenant)s, %(home)s, %(at)s, %(n)s, %(line)s)

-- records_grown
update anima.home set records = records + %(n)s, bytes = bytes + %(size)s where [own]

-- records_put
update anima.home set records = %(n)s, bytes = %(size)s where [own]

-- records: those that hold a range of the ledger's bytes
select at, line from anima.record where [own] and at < %(end)s and at >= coalesce((select max(at)
from anima.record where [own] and at <= %(start)s), 0) order by at

-- heads: the noted ends of the chain that stands now
select n, hash from anima.head
where [own] and seq > coalesce((select max(seq) from anima.head where [own] and n = 0), 0) order by seq

-- head_gone: whether the ledger is gone, though its end is noted
select bytes = 0 and exists(select 1 from anima.head
    where [own] and seq > coalesce((select max(seq) from anima.head where [own] and n = 0), 0)) from anima.home where [own]

-- head_new: the end of the chain, where the application may only add
insert into anima.head(tenant, home, seq, n, hash) select %(tenant)s, %(home)s,
    coalesce(max(seq), 0) + 1, %(n)s, %(hash)s from anima.head where [own]

-- lease_taken: its number, where it was free or ours
insert into anima.lease values(%(tenant)s, %(home)s, %(name)s, %(holder)s, 1, now() + %(span)s * interval '1 second')
on conflict(tenant, home, name) do update set holder = excluded.holder, until = excluded.until,
    token = lease.token + (lease.holder != excluded.holder)::int
where lease.until <= now() or lease.holder = excluded.holder returning token

-- lease_ended
update anima.lease set until = now() where [own] and name = %(name)s and holder = %(holder)s

-- changed: the home's version, and documents that changed or went since an earlier one
select version, null from anima.home where [own] union all
select 0, path from anima.file where [own] and is_document and version > %(since)s::bigint union all
select 0, path from anima.gone where [own] and version > %(since)s::bigint

-- revisions_of: revisions, of one path or of all, the newest first, with what each changed
select r.id, r.person, r.message, v.path from (select * from anima.revision where [own]
    and (%(path)s::text is null or n in (select n from anima.version where [own] and path = %(path)s))
    order by n desc limit %(limit)s) as r
left join anima.version v on v.tenant = r.tenant and v.home = r.home and v.n = r.n order by r.n desc, v.path

-- revisions
select n, id, person, message from anima.revision where [own] order by n

-- revision_named: two at most, of those that begin so
select n from anima.revision where [own] and id >= %(id)s and id < %(id)s || 'g' limit 2

-- revision_new
insert into anima.revision values(%(tenant)s, %(home)s, %(n)s, %(id)s, %(person)s, %(message)s)

-- revisions_gone: of which versions are left
select distinct n from anima.version where [own] and n not in (select n from anima.revision where [own])

-- versions_back: of some documents, so many versions up to a revision, the newest first
select path, n, blob, start, rest, body from (select path, n, blob, start, rest, body,
    row_number() over (partition by path order by n desc) as back from anima.version
    where [own] and path = any(%(paths)s) and n <= %(n)s) as last where back <= %(most)s order by path, n desc

-- versions_of: what one revision holds
select path, n, blob, start, rest, body from anima.version where [own] and n = %(n)s order by path

-- versions
select path, n, blob, start, rest, body from anima.version where [own] order by n, path

-- version_new
insert into anima.version values(%(tenant)s, %(home)s, %(path)s, %(n)s, %(blob)s, %(start)s, %(rest)s, %(body)s)

-- tree: every document of a revision
select path, blob from (select path, blob, row_number() over (partition by path order by n desc) as back
from anima.version where [own] and n <= %(n)s) as last where back = 1 and blob is not null

-- content_in_postgres: what `[content]` stands for
body || coalesce((select string_agg(data, ''::bytea order by at) from anima.line
    where line.tenant = file.tenant and line.home = file.home and line.key = file.key), ''::bytea)

-- content_in_sqlite
cast(body || coalesce((select group_concat(data, '') from (select data from line where line.tenant = file.tenant
    and line.home = file.home and line.key = file.key order by at)), '') as blob)

-- role: whether this one could pass over row policies, whether they bind it, and how many texts made the tables
select rolsuper or rolbypassrls or pg_has_role(current_user, 'anima_owner', 'member'),
    coalesce((select bool_and(row_security_active(c.oid)) from pg_class c
        where c.relnamespace = 'anima'::regnamespace and c.relkind in ('r', 'p')
        and c.relname not in ('tenant', 'migration')), false),
    (select count(*) from anima.migration)
from pg_roles where rolname = current_user

-- roles: and the schema, for whoever owns the database
do $$ begin
    if not exists(select from pg_roles where rolname = 'anima_owner') then create role anima_owner nologin; end if;
    if not exists(select from pg_roles where rolname = 'anima_app') then create role anima_app login; end if;
    if not pg_has_role(current_user, 'anima_owner', 'set') then execute 'grant anima_owner to current_user'; end if;
end $$;
create schema if not exists anima authorization anima_owner;

-- migration
create table if not exists anima.migration(n integer primary key, digest text not null, time timestamptz default now())

-- tables: that have rows of tenants, so that none that comes later is forgotten
select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
where c.relnamespace = 'anima'::regnamespace and c.relkind in ('r', 'p') and c.relname != 'tenant' order by 1

-- tenant_suspended
update anima.tenant set suspended = case when %(again)s then null else now() end where name = %(name)s

-- usage: of each kind, how much a tenant has or did, and how much it may be
select k.kind, anima.used(k.kind), q.most from unnest(%(kinds)s::text[]) with ordinality k(kind, n)
left join anima.quota q on q.tenant = %(tenant)s and q.kind = k.kind order by n

-- usage_new
insert into anima.usage(tenant, kind, amount) values(%(tenant)s, %(kind)s, %(amount)s)
on conflict(tenant, day, kind) do update set amount = usage.amount + excluded.amount

-- credentials: every one of a tenant's that works, without its digest
select id, agent, kind, name, scope, sender, access, made, expires from anima.credential
where tenant = %(tenant)s and (expires is null or expires > now()) order by made, id

-- credential_new
select anima.credential_add(%(id)s, %(agent)s, %(kind)s, %(name)s, %(scope)s, %(sender)s, %(access)s, %(expires)s,
    %(by)s, %(digest)s)

-- credential_rotated
update anima.credential set digest = %(digest)s, before = digest, until = now() + %(grace)s
where tenant = %(tenant)s and id = %(id)s and kind != 'page' and (expires is null or expires > now())

-- credential_pages_gone: browsers that came in with a credential
delete from anima.credential where tenant = %(tenant)s and made_by = %(id)s and kind = 'page'

-- credential_gone: with all that was made with it
select anima.credential_drop(id, agent) from anima.credential where tenant = %(tenant)s and id = %(id)s

-- shown_new
insert into anima.shown values(%(tenant)s, %(id)s, %(face)s) on conflict do nothing
