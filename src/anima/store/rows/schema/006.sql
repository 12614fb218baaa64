-- Who comes with the secret that a credential had before may be let in no longer than that one counts.
create or replace function anima.credential_found(asked bytea, asked_id text) returns table(
    tenant bigint, tenant_name text, is_suspended boolean, id text, agent text, kind text, name text, scope text,
    sender text, access text, made timestamptz, expires timestamptz)
    language sql stable security definer set search_path = anima, pg_temp as $$
    select c.tenant, t.name, t.suspended is not null, c.id, c.agent, c.kind, c.name, c.scope, c.sender, c.access, c.made,
        case when c.before = asked then least(c.expires, c.until) else c.expires end
    from anima.credential c join anima.tenant t on t.tenant = c.tenant
    where (c.digest = asked or (c.before = asked and c.until > now()) or c.id = asked_id)
        and (c.expires is null or c.expires > now()) $$;
