"""Numbers that clients choose are added up as numeric; `kcoord_bigint` brings a sum back into the range of bigint.

It is one expression without a subquery, so that Postgres puts it into the statements that call it.
"""

from django.db import migrations

BIGINT = """
create function kcoord_bigint(value numeric) returns bigint language sql immutable parallel safe as $$
    select case when value > 9223372036854775807 then 9223372036854775807
                when value < -9223372036854775808 then -9223372036854775808
                else value end::bigint
$$;
"""
NO_BIGINT = "drop function kcoord_bigint(numeric);"


class Migration(migrations.Migration):

    dependencies = [("kcoord", "0001_initial")]

    operations = [migrations.RunSQL(BIGINT, NO_BIGINT)]
